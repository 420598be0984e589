import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';

import { stringify } from 'yaml';

import type { Config } from '../config.ts';
import { folderOf, load, loadYaml, problemOf, problemsOf } from '../../../tests/support/test-config.ts';

type Tree = Readonly<Record<string, unknown>>;

const loadOutbox = (outbox: Tree, env: NodeJS.ProcessEnv = {}): Config =>
  loadYaml(stringify({ outbox }), env);

const loadOne = (destination: unknown, env: NodeJS.ProcessEnv = {}): Config =>
  loadOutbox({ destinations: { broker: destination } }, env);

const url = 'https://broker.example.com/orders';
const http = { type: 'http', url };
const smtp = { type: 'smtp', host: 'mail', from: 'a@b.example', to: ['a@b.example'] };

test('a problem inside a destination is told by its full path and line, with what was meant', () => {
  const text =
    'outbox:\n  destinations:\n    broker:\n      type: http\n      url: http://a/b\n      timout_ms: 5\n';
  const { source, ...problem } = problemOf(() => loadYaml(text));
  assert.deepEqual(problem, {
    path: 'outbox.destinations.broker.timout_ms',
    reason: 'unknown key for type http',
    suggestion: 'timeout_ms',
  });
  assert.match(source ?? '', /config\.yaml:6$/);
  const elsewhere = problemOf(() => loadOne({ ...http, dead_retention: '1d' }));
  assert.equal(elsewhere.suggestion, undefined, 'a key of another section was not meant');
  const missing = problemOf(() => loadYaml('outbox:\n  destinations:\n    broker:\n      type: http\n'));
  assert.deepEqual([missing.path, missing.reason], ['outbox.destinations.broker.url', 'is missing']);
  assert.match(missing.source ?? '', /config\.yaml:3$/);
});

const wrong: readonly (readonly [destination: unknown, at: string, reason: RegExp])[] = [
  [5, '', /must be a map of keys, not a number/],
  [{}, '.type', /is missing/],
  [{ type: 'htpp', url }, '.type', /one of http, kafka, smtp/],
  [{ ...http, topic: 'a' }, '.topic', /unknown key for type http/],
  [{ ...http, url: 'ftp://a/b' }, '.url', /http:\/\/ or https:\/\//],
  [{ ...http, url: 'broker:9100/orders' }, '.url', /http:\/\/ or https:\/\//],
  [{ ...http, url: 'http:///orders' }, '.url', /http:\/\/ or https:\/\//],
  [{ ...http, url: 'http://me:hunter2@a/b' }, '.url', /must not hold a user or a password/],
  [{ ...http, url: 'http://hunter2@a/b' }, '.url', /must not hold a user or a password/],
  [{ ...http, url: 'http://a/b#c' }, '.url', /fragment/],
  [{ ...http, method: 'GET' }, '.method', /one of POST, PUT, PATCH/],
  [{ ...http, status_url: 'https://a/status' }, '.status_url', /must hold \{key\}/],
  [{ ...http, status_url: 'https://{key}.a/status' }, '.status_url', /in its path or query/],
  [{ ...http, status_url: 'https://u:p@a/{key}' }, '.status_url', /must not hold a user/],
  [{ ...http, status: { field: 'a', done: ['b'] } }, '.status_url', /is missing, but .*\.status is set/],
  [{ ...http, status: { done: ['b'] } }, '.status.field', /is missing/],
  [{ ...http, status: { field: 'a' } }, '.status', /values in done or absent/],
  [{ ...http, status: { field: 'a', done: 'b', absent: 'b' } }, '.status', /one value in done and absent/],
  [{ ...http, conflict: 'proccessed' }, '.conflict', /one of processed, running/],
  [{ ...http, conflict: { processed: ['a'] } }, '.conflict', /either field or header/],
  [{ ...http, conflict: { field: 'a', header: 'b', running: ['c'] } }, '.conflict', /either field or header/],
  [{ ...http, conflict: { field: 'a' } }, '.conflict', /values in processed or running/],
  [{ ...http, conflict: { field: 'a', processed: ['b'], running: ['b'] } }, '.conflict', /one value in/],
  [{ ...http, conflict: { header: 'a b', processed: ['b'] } }, '.conflict.header', /name of a header/],
  [{ ...http, conflict: { field: 'a', processed: [5] } }, '.conflict.processed[0]', /put it in quotes/],
  [{ ...http, headers: ['A: b'] }, '.headers', /must be a map of names, not a list/],
  [{ ...http, headers: { 'a b': 'c' } }, '.headers["a b"]', /must be the name of a header/],
  [{ ...http, headers: { A: 'b', a: 'c' } }, '.headers', /each header once/],
  [{ ...http, headers: { A: 'b\nc: d' } }, '.headers.A', /without control characters/],
  [{ ...http, headers: { A: 'schlüssel' } }, '.headers.A', /printable ASCII/],
  [{ ...http, headers: { A: '' } }, '.headers.A', /printable ASCII/],
  [{ ...http, headers: { A: 'b ' } }, '.headers.A', /without blanks at its ends/],
  [{ ...http, headers: { A: 5 } }, '.headers.A', /put it in quotes/],
  [{ ...http, headers: { A: { file: '/nowhere' } } }, '.headers.A.file', /cannot be read: ENOENT/],
  [{ ...http, headers: { A: { file: '/nowhere', path: '/x' } } }, '.headers.A.path', /unknown key/],
  [{ ...http, tls: { ca: '/nowhere' } }, '.tls.ca', /cannot be read: ENOENT/],
  [{ ...http, tls: { caa: '/nowhere' } }, '.tls.caa', /unknown key/],
  [{ ...http, schema: '/nowhere.json' }, '.schema', /cannot be read: ENOENT/],
  [{ ...http, timeout_ms: 600_000 }, '.timeout_ms', /less than outbox\.stuck_threshold_min/],
  [{ ...http, timeout_ms: 300_000, status_url: `${url}/{key}` }, '.timeout_ms', /less than half of/],
  [{ ...http, idempotency: 'enforced', dedup_window: '49h' }, '.dedup_window', /outbox\.ledger_ttl/],
  [{ ...http, dedup_window: '49h' }, '.dedup_window', /outbox\.ledger_ttl/],
  [{ type: 'kafka' }, '.topic', /is missing/],
  [{ type: 'kafka', topic: 'a b' }, '.topic', /must be a topic name/],
  [{ type: 'kafka', topic: '..' }, '.topic', /must be a topic name/],
  [{ type: 'kafka', topic: '__consumer_offsets' }, '.topic', /must be a topic name/],
  [{ ...smtp, to: [] }, '.to', /1 to 1000 items/],
  [{ ...smtp, to: ['a@b, c@d'] }, '.to[0]', /must be a mail address/],
  [{ ...smtp, from: 'a@b\r\nBcc: c@d' }, '.from', /without control characters/],
  [{ ...smtp, user: 'me' }, '.password', /is missing, but/],
  [{ ...smtp, password: 'hunter2' }, '.user', /is missing, but/],
  [{ ...smtp, user: 'me', password: { file: '/nowhere' } }, '.password.file', /ENOENT/],
];

test('a destination that cannot work is refused by the key that is wrong', () => {
  for (const [destination, at, reason] of wrong) {
    const problem = problemOf(() => loadOne(destination));
    assert.equal(problem.path, `outbox.destinations.broker${at}`, inspect(destination));
    assert.match(problem.reason, reason);
    assert.match(problem.source ?? '', /config\.yaml:\d+$/, inspect(destination));
    assert(!inspect(problem).includes('hunter2'));
  }
});

test('headers that would replace ours are refused, however they are written', () => {
  for (const name of [
    'Idempotency-Key',
    'TRACEPARENT',
    'content-length',
    'Host',
    'Transfer-Encoding',
    'Expect',
  ])
    assert.deepEqual(
      [problemOf(() => loadOne({ ...http, headers: { [name]: 'x' } }))].map(({ path, reason }) => [
        path,
        reason,
      ]),
      [[`outbox.destinations.broker.headers.${name}`, 'must not be set: it belongs to the request itself']],
    );
});

test('a certificate for a destination needs its key, and the key its certificate', () => {
  const pem = join(folderOf({ 'some.pem': 'x' }), 'some.pem');
  const missing = (tls: Tree): string => problemOf(() => loadOne({ ...http, tls })).path;
  assert.equal(missing({ cert: pem }), 'outbox.destinations.broker.tls.key');
  assert.equal(missing({ key: pem }), 'outbox.destinations.broker.tls.cert');
  assert.deepEqual(loadOne({ type: 'http', url: 'http://a/b', tls: { ca: pem } }).warnings, [
    'outbox.destinations.broker.tls is not used: outbox.destinations.broker.url begins with http:',
  ]);
});

test('the rules between a destination and the outbox look at defaults, too', () => {
  const cases: readonly (readonly [Tree, NodeJS.ProcessEnv, string])[] = [
    [{ ...http, idempotency: 'enforced' }, { OUTBOX_LEDGER_TTL: '23h' }, 'dedup_window'],
    [http, { OUTBOX_STUCK_THRESHOLD_MIN: '0.08' }, 'timeout_ms'],
    [{ type: 'kafka', topic: 'a' }, { OUTBOX_STUCK_THRESHOLD_MIN: '0.08' }, 'timeout_ms'],
  ];
  for (const [destination, env, key] of cases) {
    const { path, source } = problemOf(() => loadOne(destination, env));
    assert.deepEqual([path, source], [`outbox.destinations.broker.${key}`, Object.keys(env)[0]]);
  }
  assert.equal(loadOne(http, { OUTBOX_LEDGER_TTL: '23h' }).outbox.ledgerTtlMs, 82_800_000);
  assert.equal(loadOne(http, { OUTBOX_STUCK_THRESHOLD_MIN: '0.084' }).outbox.leaseMs, 5040);
  const env = { OUTBOX_BACKOFF_MAX_MS: '1999' };
  assert.equal(problemOf(() => load({ env })).path, 'outbox.backoff.max_ms');
});

test('one broken destination does not hide what is wrong between the others', () => {
  const destinations = { a: { type: 'http' }, _b: http, c: { ...http, timeout_ms: 600_000 } };
  assert.deepEqual(
    problemsOf(() => loadOutbox({ destinations })).map(({ path }) => path),
    ['outbox.destinations.a.url', 'outbox.destinations._b', 'outbox.destinations.c.timeout_ms'],
  );
});

test('names that the system keeps for itself are refused', () => {
  const { path, reason } = problemOf(() => loadOutbox({ destinations: { _saga_events: http } }));
  assert.equal(path, 'outbox.destinations._saga_events');
  assert.match(reason, /reserved for destinations that the system makes itself/);
});

test('a schema that is no JSON object is refused', () => {
  const file = join(folderOf({ 'list.json': '["hunter2"]' }), 'list.json');
  const { path, reason } = problemOf(() => loadOne({ ...http, schema: file }));
  assert.deepEqual([path, reason], ['outbox.destinations.broker.schema', 'the file must hold a JSON object']);
  writeFileSync(file, '{"type": "object"}');
  assert.deepEqual(loadOne({ ...http, schema: file }).outbox.destinations[0]?.schema, { type: 'object' });
});
