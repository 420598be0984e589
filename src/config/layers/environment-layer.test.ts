import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as fc from 'fast-check';

import { environmentLayer, variableOf } from './environment-layer.ts';
import { chosenName, mapOf } from '../formats/named-map.ts';
import { isMap, section, wholeNumber } from '../formats/value.ts';
import { keysIn } from '../schema-keys.ts';
import { schema } from '../schema.ts';
import { mergeLayers, type Layer } from './merge-layers.ts';

const known = keysIn(schema);
const paths = known.map(({ path }) => path);

const read = (env: NodeJS.ProcessEnv): ReturnType<typeof environmentLayer> => environmentLayer(env, known);

/** What the variables come to, by path. */
const valuesIn = (layer: Layer): unknown =>
  [...mergeLayers([layer], schema).given].flatMap(([path, { value }]) =>
    isMap(value) ? [] : [[path, value]],
  );

/** As after a file that names these destinations. */
function readAfter(names: readonly string[], env: NodeJS.ProcessEnv): ReturnType<typeof environmentLayer> {
  const destinations = Object.fromEntries(names.map((name) => [name, { headers: { 'X-Key': 'a' } }]));
  return environmentLayer(env, keysIn(schema, { outbox: { destinations } }));
}

test('no two keys share a variable', () => {
  const variables = paths.map(variableOf);
  assert.equal(new Set(variables).size, variables.length);
});

test('every key is set by the variable named after its path', () => {
  for (const path of paths)
    assert.deepEqual(
      read({ [variableOf(path)]: 'x' }).entries.map(({ keys, source }) => [keys.join('.'), source]),
      [[known.find((each) => each.path === path)?.keys.join('.'), variableOf(path)]],
    );
});

test('a variable is read by the type of its key', () => {
  const { entries } = read({
    SERVER_PORT: '8081',
    SERVER_ALLOW_UNAUTHENTICATED: 'true',
    KAFKA_BROKERS: 'a:1, b:2',
    DATABASE_PASSWORD: '123',
    DLQ_ORIGINAL_TOPIC_RULES: '[{"match":"*.failed","topic":"*"}]',
  });
  assert.deepEqual(Object.fromEntries(entries.map(({ keys, value }) => [keys.join('.'), value])), {
    'server.port': 8081,
    'server.allow_unauthenticated': true,
    'kafka.brokers': ['a:1', 'b:2'],
    'database.password': '123',
    'dlq.original_topic_rules': [{ match: '*.failed', topic: '*' }],
  });
});

test('an empty variable is not set', () => {
  assert.deepEqual(read({ DATABASE_URL: '', PORT: '', KAFKA_BROKERS: '' }), {
    entries: [],
    problems: [],
    warnings: [],
  });
});

test('the name after the path comes after the common one, and so wins', () => {
  assert.deepEqual(
    read({ SERVER_PORT: '2', PORT: '1' }).entries.map(({ value }) => value),
    [1, 2],
  );
});

test('what Kubernetes sets for a Service of the same name is left alone', () => {
  const { entries, warnings } = read({
    DATABASE_PORT: 'tcp://10.0.0.1:5432',
    DATABASE_PORT_5432_TCP_ADDR: '10.0.0.1',
    DATABASE_SERVICE_HOST: '10.0.0.1',
    KAFKA_SERVICE_PORT_CLIENT: '9092',
    KAFKA_PORT: 'tcp://10.0.0.2:9092',
  });
  assert.deepEqual(entries, []);
  assert.deepEqual(warnings, ['DATABASE_PORT is ignored: it is a Kubernetes service link']);
});

test('foreign variables are passed over in silence', () => {
  const { warnings } = read({
    PATH: '/bin',
    HOME: '/',
    HOST: 'x',
    LOG_FORMAT: 'json',
    PGHOST: 'db',
    NODE_ENV: 'test',
  });
  assert.deepEqual(warnings, []);
});

test('a variable of our sections that is no key is warned of', () => {
  assert.deepEqual(read({ DATABASE_FOO: 'x', DLQ_RETENTION_DAYS: '3', DATABSE_HOST: 'x' }).warnings, [
    'DATABASE_FOO is not the name of a key',
    'DLQ_RETENTION_DAYS is not the name of a key; did you mean DLQ_ARCHIVE_RETENTION_DAYS?',
    'DATABSE_HOST is not the name of a key; did you mean DATABASE_HOST?',
  ]);
});

test('any slip behind the section is warned of with the right suggestion', () => {
  const path = fc.constantFrom(...paths.filter((each) => each.includes('.')).map(variableOf));
  fc.assert(
    fc.property(
      path,
      fc.nat(),
      fc.constantFrom('', 'X', '_', '7'),
      fc.boolean(),
      (variable, position, letter, replaces) => {
        const from = variable.indexOf('_') + 1;
        const index = from + (position % (variable.length - from));
        const typed =
          variable.slice(0, index) + letter + variable.slice(index + (replaces || letter === '' ? 1 : 0));
        fc.pre(
          typed !== variable && !paths.includes(typed) && typed !== 'KAFKA_' && !typed.includes('_SERVICE_'),
        );
        const [warning, ...more] = read({ [typed]: 'x' }).warnings;
        assert.deepEqual(more, []);
        assert.match(warning ?? '', new RegExp(`^${typed} .*did you mean (.* or )?${variable}( or .*)?\\?$`));
      },
    ),
    { numRuns: 2000 },
  );
});

test('keys inside a map that users name have variables, the more exact one last', () => {
  const { entries, problems, warnings } = readAfter(['broker', 'eu.broker'], {
    OUTBOX_DESTINATIONS_BROKER_HEADERS_X_KEY: 'b',
    OUTBOX_DESTINATIONS_BROKER_TLS_CA: '/ca.pem',
    OUTBOX_DESTINATIONS_BROKER: '{"timeout_ms": 1}',
    OUTBOX_DESTINATIONS_EU_BROKER_TIMEOUT_MS: '2',
    OUTBOX_DESTINATIONS_EU_BROKER_CONFLICT: '{"field": "code"}',
  });
  assert.deepEqual([problems, warnings], [[], []]);
  assert.deepEqual(valuesIn({ entries, problems, warnings }), [
    ['outbox.destinations.broker.timeout_ms', 1],
    ['outbox.destinations.broker.headers.X-Key', 'b'],
    ['outbox.destinations.broker.tls.ca', '/ca.pem'],
    ['outbox.destinations["eu.broker"].timeout_ms', 2],
    ['outbox.destinations["eu.broker"].conflict.field', 'code'],
  ]);
});

test('a variable that could mean two keys is a problem, and none is set by it', () => {
  const env = { OUTBOX_DESTINATIONS_A_STATUS_URL: 'http://a/{key}' };
  const { entries, problems } = readAfter(['a', 'a_status'], env);
  assert.deepEqual(entries, []);
  assert.deepEqual(problems, [
    {
      path: 'outbox.destinations.a.status_url',
      reason: 'has the same variable as outbox.destinations.a_status.url',
      source: 'OUTBOX_DESTINATIONS_A_STATUS_URL',
    },
    {
      path: 'outbox.destinations.a_status.url',
      reason: 'has the same variable as outbox.destinations.a.status_url',
      source: 'OUTBOX_DESTINATIONS_A_STATUS_URL',
    },
  ]);
});

test('a variable of a destination that nobody names is warned of', () => {
  assert.deepEqual(readAfter(['broker'], { OUTBOX_DESTINATIONS_BROKR_URL: 'x' }).warnings, [
    'OUTBOX_DESTINATIONS_BROKR_URL is not the name of a key; did you mean OUTBOX_DESTINATIONS_BROKER_URL?',
  ]);
});

test('a map at the top of the file has variables for what is in it, too', () => {
  const ports = section({ ports: mapOf(chosenName('ports'), wholeNumber(1, 9), { default: {} }) });
  const keys = keysIn(ports, { ports: { main: 1 } });
  assert.deepEqual(environmentLayer({ PORTS_MAIN: '2' }, keys).entries, [
    { keys: ['ports', 'main'], value: 2, source: 'PORTS_MAIN' },
  ]);
});
