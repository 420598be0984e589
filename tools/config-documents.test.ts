import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { keysIn } from '../src/config/schema-keys.ts';
import { schema } from '../src/config/schema.ts';
import { assertApproved } from '../tests/support/approved.ts';
import { exampleFile } from './config-example.ts';
import { configJsonSchema } from './config-json-schema.ts';
import { tablesIn, withTables } from './config-reference.ts';

const root = new URL('../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const reference = 'docs/reference/configuration.md';

const accepts = new Ajv({ allErrors: true, keywords: ['errorMessage'], allowUnionTypes: true }).compile(
  configJsonSchema(),
);

const errorsIn = (value: unknown): readonly string[] =>
  accepts(value)
    ? []
    : (accepts.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);

test('the schema for editors, the example file and the tables of the reference are those of the schema', async () => {
  const json = `${JSON.stringify(configJsonSchema(), null, 2)}\n`;
  await assertApproved(new URL('config/config.schema.json', root), json);
  await assertApproved(new URL('config/config.yaml', root), exampleFile());
  await assertApproved(new URL(reference, root), withTables(read(reference)));
});

test('every key is in a table of the reference', () => {
  const tables = tablesIn(read(reference));
  const sections = Object.keys(schema.properties);
  assert.deepEqual(
    sections.filter((key) => !tables.some((table) => table === key || table.startsWith(`${key}.`))),
    [],
  );
  const maps = [
    'dlq.auto_retry.[]',
    'outbox.destinations.*',
    'jobs.queues.*',
    'jobs.cron.*',
    'services.*',
    'notify.[]',
    'auth.roles.*',
    'auth.bindings.[]',
  ];
  assert.deepEqual(
    maps.filter((map) => !tables.includes(map)),
    [],
  );
});

test('every key says what it means', () => {
  const named = { queues: { mail: {} }, cron: { nightly: {} } };
  const tree = { outbox: { destinations: { broker: {} } }, services: { shop: {} }, jobs: named };
  const silent = keysIn(schema, tree).filter(({ node }) => !('description' in node));
  assert.deepEqual(
    silent
      .map(({ path }) => path)
      .filter((path) => !/\.(type|broker|shop|mail|nightly|tls|backoff)$/.test(path)),
    [],
  );
});

test('the schema for editors accepts the example file and the files of the fixtures', () => {
  const fixtures = readdirSync(new URL('src/config/fixtures/', root)).map(
    (name) => `src/config/fixtures/${name}`,
  );
  assert.notEqual(fixtures.length, 0);
  for (const file of ['config/config.yaml', ...fixtures])
    assert.deepEqual(errorsIn(parse(read(file))), [], file);
});

test('the schema for editors refuses typos, wrong types and values out of bounds', () => {
  for (const wrong of [
    { databse: {} },
    { server: { prot: 1 } },
    { server: { port: '80' } },
    { dlq: { max_retries: 0 } },
    { kafka: { publish_timeout: 5 } },
    { kafka: { publish_timeout: '5 s' } },
    { telemetry: { log_level: 'inof' } },
    { outbox: { destinations: { broker: { type: 'http', timout_ms: 5 } } } },
    { outbox: { destinations: { Broker: { type: 'http' } } } },
    { jobs: { queues: { mail: { rate_limit: '0/s' } } } },
    { notify: [{ type: 'webhook', url: 'https://hooks.example.com' }] },
  ])
    assert.notDeepEqual(errorsIn(wrong), [], JSON.stringify(wrong));
});

test('the schema for editors accepts parts of a configuration, and null for any key', () => {
  for (const part of [
    {},
    { dlq: null },
    { dlq: { archive: null } },
    { roles: 'api' },
    { outbox: { destinations: { broker: null, old: { timeout_ms: null } } } },
  ])
    assert.deepEqual(errorsIn(part), [], JSON.stringify(part));
});
