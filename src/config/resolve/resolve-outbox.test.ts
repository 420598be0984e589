import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';

import { stringify } from 'yaml';

import type { Config } from '../config.ts';
import type { DestinationSettings } from './resolve-destinations.ts';
import { folderOf, load, loadYaml, problemOf } from '../../../tests/support/test-config.ts';

type Tree = Readonly<Record<string, unknown>>;

const url = 'https://broker.example.com/orders';

const loadOutbox = (outbox: Tree, env: NodeJS.ProcessEnv = {}): Config =>
  loadYaml(stringify({ outbox }), env);

const loadOne = (destination: unknown, env: NodeJS.ProcessEnv = {}): Config =>
  loadOutbox({ destinations: { broker: destination } }, env);

function destinationOf<T extends DestinationSettings['type']>(
  type: T,
  { outbox }: Config,
): Extract<DestinationSettings, { type: T }> {
  const [found, ...more] = outbox.destinations;
  assert(found?.type === type && more.length === 0, inspect(outbox.destinations));
  return found as Extract<DestinationSettings, { type: T }>;
}

test('without a word about it the outbox has the numbers of its protocol and no destinations', () => {
  assert.deepEqual(load({}).outbox, {
    batchSize: 32,
    parallelism: 4,
    retryMax: 8,
    idleSleepMs: 200,
    leaseMs: 600_000,
    ledgerTtlMs: 172_800_000,
    auditRetentionMs: 34_560_000_000,
    maxAgeMs: 86_400_000,
    backoff: { initialMs: 2000, maxMs: 256_000, jitter: 0.1 },
    probe: { initialMs: 5000, maxMs: 60_000 },
    destinations: [],
  });
});

test('the variables of the protocol set its numbers, fractions of a minute included', () => {
  const { outbox } = load({
    env: {
      OUTBOX_BATCH_SIZE: '500',
      OUTBOX_PARALLELISM: '2',
      OUTBOX_RETRY_MAX: '0',
      OUTBOX_IDLE_SLEEP_MS: '50',
      OUTBOX_STUCK_THRESHOLD_MIN: '0.02',
      OUTBOX_LEDGER_TTL: '7d',
      OUTBOX_BACKOFF_JITTER: '0',
    },
  });
  const { batchSize, parallelism, retryMax, idleSleepMs, leaseMs, ledgerTtlMs, backoff } = outbox;
  assert.deepEqual([batchSize, parallelism, retryMax, idleSleepMs, leaseMs], [500, 2, 0, 50, 1200]);
  assert.deepEqual([ledgerTtlMs, backoff.jitter], [604_800_000, 0]);
  for (const text of ['0', '-1', '1e3', 'ten', '1441', '.5'])
    assert.equal(
      problemOf(() => load({ env: { OUTBOX_STUCK_THRESHOLD_MIN: text } })).path,
      'outbox.stuck_threshold_min',
    );
});

test('an http destination needs a URL and nothing else', () => {
  const { headers, ...settings } = destinationOf('http', loadOne({ type: 'http', url }));
  assert.deepEqual(headers, {});
  assert.deepEqual(settings, {
    name: 'broker',
    type: 'http',
    url,
    method: 'POST',
    timeoutMs: 5000,
    tls: undefined,
    body: 'request',
    response: 'json',
    maxResponseBytes: 65_536,
    outsideIdField: 'broker_order_id',
    idempotency: 'none',
    dedupWindowMs: 86_400_000,
    conflict: undefined,
    statusUrl: undefined,
    status: undefined,
    schema: undefined,
    maxInFlight: 128,
    maxAgeMs: 86_400_000,
  });
});

test('an http destination takes every key', () => {
  const pem = join(folderOf({ 'some.pem': 'PEM' }), 'some.pem');
  const config = loadOne({
    type: 'http',
    url,
    method: 'put',
    headers: { 'X-Api-Key': 'hunter2', 'Content-Type': 'application/vnd.orders+json' },
    timeout_ms: 250,
    tls: { ca: pem, cert: pem, key: pem },
    body: 'order',
    response: 'any',
    max_response_bytes: 1024,
    outside_id_field: 'result.id',
    idempotency: 'enforced',
    dedup_window: '48h',
    conflict: { field: 'error.code', processed: ['DUPLICATE'], running: 'IN_PROGRESS' },
    status_url: 'https://broker.example.com/orders?key={key}',
    status: { field: 'state', done: ['filled'], absent: ['none'] },
    schema: 'order',
    max_in_flight: 7,
    max_age: '1h',
  });
  const { headers, tls, schema, ...settings } = destinationOf('http', config);
  assert.deepEqual(
    Object.entries(headers).map(([name, value]) => [name, value()]),
    [
      ['X-Api-Key', 'hunter2'],
      ['Content-Type', 'application/vnd.orders+json'],
    ],
  );
  assert.deepEqual({ ...tls }, { ca: 'PEM', cert: 'PEM', key: 'PEM' });
  assert.equal(schema?.['type'], 'object');
  assert.deepEqual(settings, {
    name: 'broker',
    type: 'http',
    url,
    method: 'PUT',
    timeoutMs: 250,
    body: 'order',
    response: 'any',
    maxResponseBytes: 1024,
    outsideIdField: 'result.id',
    idempotency: 'enforced',
    dedupWindowMs: 172_800_000,
    conflict: { in: { field: 'error.code' }, processed: ['DUPLICATE'], running: ['IN_PROGRESS'] },
    statusUrl: 'https://broker.example.com/orders?key={key}',
    status: { field: 'state', done: ['filled'], absent: ['none'] },
    maxInFlight: 7,
    maxAgeMs: 3_600_000,
  });
  assert.deepEqual(config.warnings, []);
});

test('what a destination leaves out follows the keys for all of them', () => {
  const env = {
    OUTBOX_BATCH_SIZE: '10',
    OUTBOX_PARALLELISM: '3',
    OUTBOX_MAX_AGE: '2h',
    KAFKA_BROKERS: 'a:1',
  };
  const config = loadOne({ type: 'kafka', topic: 'orders.v1' }, { ...env, KAFKA_PUBLISH_TIMEOUT: '7s' });
  assert.deepEqual(destinationOf('kafka', config), {
    name: 'broker',
    type: 'kafka',
    topic: 'orders.v1',
    key: 'ordering_key',
    timeoutMs: 7000,
    schema: undefined,
    maxInFlight: 30,
    maxAgeMs: 7_200_000,
  });
});

test('an smtp destination uses TLS, and the port that belongs to its kind', () => {
  const smtp = { type: 'smtp', host: 'mail', from: 'Redrive <redrive@example.com>', to: 'ops@example.com' };
  assert.deepEqual(destinationOf('smtp', loadOne(smtp)), {
    name: 'broker',
    type: 'smtp',
    host: 'mail',
    port: 587,
    security: 'starttls',
    user: undefined,
    password: undefined,
    from: 'Redrive <redrive@example.com>',
    to: ['ops@example.com'],
    timeoutMs: 10_000,
    schema: undefined,
    maxInFlight: 128,
    maxAgeMs: 86_400_000,
  });
  assert.equal(destinationOf('smtp', loadOne({ ...smtp, security: 'implicit' })).port, 465);
  const login = { user: 'me', password: 'hunter2', security: 'none', port: 25 };
  const open = loadOne({ ...smtp, ...login });
  assert.equal(destinationOf('smtp', open).password?.(), 'hunter2');
  assert.deepEqual(open.warnings, [
    'outbox.destinations.broker.password is sent in the clear: outbox.destinations.broker.security is none',
  ]);
});

test('the files merge key by key: null removes a destination, a key or a header', () => {
  const files = {
    'config.yaml': stringify({
      outbox: {
        destinations: {
          broker: { type: 'http', url, timeout_ms: 100, conflict: 'processed', headers: { A: '1', B: '2' } },
          eu: { type: 'http', url },
          'eu.broker': { type: 'http', url, conflict: { field: 'code', processed: ['X'] } },
          old: { type: 'kafka', topic: 'a' },
        },
      },
    }),
    'config.dev.yaml': stringify({
      outbox: {
        destinations: {
          broker: {
            timeout_ms: null,
            conflict: { header: 'X-C', running: ['R'] },
            headers: { B: null, C: '3' },
          },
          eu: null,
          'eu.broker': { conflict: 'running' },
          old: null,
          next: { type: 'kafka', topic: 'b' },
        },
      },
    }),
  };
  const { outbox } = load({ files, env: { KAFKA_BROKERS: 'a:1' } });
  assert.deepEqual(
    outbox.destinations.map(({ name }) => name),
    ['broker', 'eu.broker', 'next'],
  );
  const [broker, euBroker] = outbox.destinations;
  assert(broker?.type === 'http' && euBroker?.type === 'http');
  assert.equal(broker.timeoutMs, 5000);
  assert.deepEqual(broker.conflict, { in: { header: 'X-C' }, processed: [], running: ['R'] });
  assert.deepEqual(Object.keys(broker.headers), ['A', 'C']);
  assert.equal(euBroker.conflict, 'running');
  const none = { ...files, 'config.dev.yaml': 'outbox: {destinations: null}' };
  assert.deepEqual(load({ files: none }).outbox.destinations, []);
});

test('variables set whole destinations as JSON, and single keys of those that are named', () => {
  const files = { 'config.yaml': stringify({ outbox: { destinations: { broker: { type: 'http', url } } } }) };
  const { outbox, sources } = load({
    files,
    env: {
      OUTBOX_DESTINATIONS:
        '{"broker": {"timeout_ms": 1, "headers": {"X-Key": "a"}}, "eu.top-ic": {"type": "kafka"}}',
      OUTBOX_DESTINATIONS_BROKER_TIMEOUT_MS: '2',
      OUTBOX_DESTINATIONS_BROKER_HEADERS_X_KEY: '{b}',
      OUTBOX_DESTINATIONS_EU_TOP_IC_TOPIC: 'orders',
      KAFKA_BROKERS: 'a:1',
    },
  });
  const [broker, topic] = outbox.destinations;
  assert(broker?.type === 'http' && topic?.type === 'kafka');
  assert.deepEqual([broker.url, broker.timeoutMs, broker.headers['X-Key']?.()], [url, 2, '{b}']);
  assert.deepEqual([topic.name, topic.topic], ['eu.top-ic', 'orders']);
  assert.equal(sources['outbox.destinations.broker.timeout_ms'], 'OUTBOX_DESTINATIONS_BROKER_TIMEOUT_MS');
  assert.match(sources['outbox.destinations.broker.url'] ?? '', /config\.yaml:5$/);
  assert.equal(sources['outbox.destinations["eu.top-ic"].type'], 'OUTBOX_DESTINATIONS');
});

test('a variable changes one key of a map, or makes the map', () => {
  const pem = join(folderOf({ 'some.pem': 'PEM' }), 'some.pem');
  const config = loadOne(
    { type: 'http', url, conflict: { field: 'code', processed: ['A'] } },
    {
      OUTBOX_DESTINATIONS_BROKER_TLS_CA: pem,
      OUTBOX_DESTINATIONS_BROKER_CONFLICT: '{"processed": ["B"], "running": ["C"]}',
    },
  );
  const { tls, conflict } = destinationOf('http', config);
  assert.equal(tls?.ca, 'PEM');
  assert.deepEqual(conflict, { in: { field: 'code' }, processed: ['B'], running: ['C'] });
});

test('a header from a file is what the file holds', () => {
  const file = join(folderOf({ token: 'Bearer one\n' }), 'token');
  const { headers } = destinationOf(
    'http',
    loadOne({ type: 'http', url, headers: { Authorization: { file } } }),
  );
  assert.equal(headers['Authorization']?.(), 'Bearer one');
});

test('a topic while Kafka is disabled is warned of: its orders wait', () => {
  assert.deepEqual(loadOne({ type: 'kafka', topic: 'orders' }).warnings, [
    'outbox.destinations.broker is not served while Kafka is disabled: its orders wait',
  ]);
});

test('the worked example of the configuration reference is right', () => {
  const manual = readFileSync(new URL('../../../docs/reference/configuration.md', import.meta.url), 'utf8');
  const [, example = ''] = /```yaml\n(outbox:\n.*?)```/s.exec(manual) ?? [];
  const token = join(folderOf({ token: 'Bearer one' }), 'token');
  const config = loadYaml(example.replace('/vault/secrets/broker-token', token));
  const { headers, conflict, dedupWindowMs } = destinationOf('http', config);
  assert.equal(headers['Authorization']?.(), 'Bearer one');
  assert.equal(dedupWindowMs, 259_200_000);
  assert.deepEqual(conflict, {
    in: { field: 'error.code' },
    processed: ['DUPLICATE_ORDER'],
    running: ['ORDER_IN_PROGRESS'],
  });
  assert.deepEqual(config.warnings, []);
});
