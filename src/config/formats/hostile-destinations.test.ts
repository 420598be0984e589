import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';

import * as fc from 'fast-check';
import { stringify } from 'yaml';

import { folderOf, load, loadYaml, messageOf } from '../../../tests/support/test-config.ts';

/** Most keys are real ones, so that trees get past the first check; some are what objects have by themselves. */
const key = fc.constantFrom(
  '',
  'a"]',
  ...'broker eu.broker _broker type url headers Authorization tls ca conflict field header processed'.split(
    ' ',
  ),
  ...'running status status_url done schema timeout_ms topic key host port user password file from to'.split(
    ' ',
  ),
  ...'max_age dedup_window __proto__ constructor toString [0]'.split(' '),
);
const secretText = fc.constantFrom(
  'hunter2',
  'http://u:hunter2@a/b',
  'http://a/hunter2 {key}',
  ' hunter2',
  'hunter2\n',
  '/hunter2/x',
);
const plainText = fc.constantFrom(
  'http',
  'kafka',
  'smtp',
  'http://a/{key}',
  'a@b.example',
  'order',
  '24h',
  '',
);
const leaf = fc.oneof(secretText, plainText, fc.constantFrom<unknown>(null, true, 0, 5, -1.5, NaN, Infinity));

const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(key, tie('tree'), { maxKeys: 6 }),
  ),
}));

/** A destination that is right but for some of its keys. */
const nearlyRight = fc
  .record({
    base: fc.constantFrom<Readonly<Record<string, unknown>>>(
      { type: 'http', url: 'http://a/b' },
      { type: 'kafka', topic: 'a' },
      { type: 'smtp', host: 'a', from: 'a@b.example', to: 'a@b.example' },
    ),
    more: fc.dictionary(key, tree, { maxKeys: 2 }),
  })
  .map(({ base, more }) => ({ ...base, ...more }));

const destinations = fc.oneof(tree, fc.dictionary(key, nearlyRight, { maxKeys: 3 }));

test('whatever stands in the files and the environment, it is a configuration or an error that repeats no value', () => {
  fc.assert(
    fc.property(destinations, destinations, destinations, (base, second, variable) => {
      const files = {
        'config.yaml': stringify({ outbox: { destinations: base } }),
        'config.dev.yaml': stringify({ outbox: { destinations: second } }),
      };
      // messageOf fails on whatever is thrown besides a ConfigError.
      const said = messageOf(() =>
        load({ files, env: { OUTBOX_DESTINATIONS: JSON.stringify(variable) ?? '' } }),
      );
      assert(!said.includes('hunter2'), said);
    }),
    { numRuns: 200 },
  );
  assert.equal(({} as { broker?: unknown }).broker, undefined);
});

test('a map in the environment that would exhaust the process is refused', () => {
  for (const text of [
    '{"a":'.repeat(50_000),
    `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`,
    '['.repeat(99_999),
  ])
    assert.match(
      messageOf(() => load({ env: { OUTBOX_DESTINATIONS: text } })),
      /^the configuration has/,
    );
});

test('very many destinations are refused in time', () => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`n${n}`, {}]));
  assert.match(
    messageOf(() => load({ env: { OUTBOX_DESTINATIONS: JSON.stringify(many) } })),
    /outbox\.destinations: must be a map of at most 1000 names/,
  );
});

test('neither a destination nor what is said about it shows a secret', () => {
  const folder = folderOf({ token: 'hunter2-token', key: 'hunter2-pem' });
  const file = join(folder, 'token');
  const pem = join(folder, 'key');
  const config = loadYaml(
    stringify({
      outbox: {
        destinations: {
          broker: {
            type: 'http',
            url: 'https://a/b',
            headers: { Authorization: { file }, 'X-Key': 'hunter2-literal' },
            tls: { cert: pem, key: pem },
          },
          mail: {
            type: 'smtp',
            host: 'a',
            from: 'a@b.example',
            to: 'a@b.example',
            user: 'me',
            password: 'hunter2-password',
          },
        },
      },
    }),
  );
  const [broker, mail] = config.outbox.destinations;
  assert(broker?.type === 'http' && mail?.type === 'smtp');
  const { headers, tls } = broker;
  const used = [headers['Authorization']?.(), headers['X-Key']?.(), mail.password?.(), tls?.key];
  assert.deepEqual(used, ['hunter2-token', 'hunter2-literal', 'hunter2-password', 'hunter2-pem']);
  const shown = `${JSON.stringify(config)} ${inspect(config, { depth: null, showHidden: true })}`;
  assert(!shown.includes('hunter2'), shown);
});

test('freezing leaves the secrets of a destination working', () => {
  const file = join(folderOf({ token: 'one' }), 'token');
  const destination = { type: 'http', url: 'https://a/b', headers: { A: { file } } };
  const config = loadYaml(stringify({ outbox: { destinations: { broker: destination } } }));
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    assert(Object.isFrozen(value), inspect(value));
    Object.values(value).forEach(visit);
  };
  visit(config);
  const [broker] = config.outbox.destinations;
  assert(broker?.type === 'http');
  writeFileSync(file, 'two');
  assert.equal(broker.headers['A']?.(), 'one');
});
