import assert from 'node:assert/strict';
import { test } from 'node:test';

import { stringify } from 'yaml';

import type { Config } from '../config.ts';
import { load, loadYaml, problemOf, problemsOf } from '../../../tests/support/test-config.ts';

const timeouts = { name: 'timeouts', topics: ['orders.*'], delay: '5m' };
const kafka = { brokers: ['kafka:9092'] };

const loadPolicies = (policies: unknown, more: object = {}): Config =>
  loadYaml(stringify({ dlq: { auto_retry: policies }, kafka, ...more }));
const flawOf = (policy: object): readonly [string, string] => {
  const { path, reason } = problemOf(() => loadPolicies([{ ...timeouts, ...policy }]));
  return [path, reason];
};

test('nothing is retried automatically by default', () => {
  assert.deepEqual(load({}).dlq.autoRetry, []);
});

test('a policy has defaults for all but its name, its topics and its delay', () => {
  assert.deepEqual(loadPolicies([timeouts]).dlq.autoRetry, [
    {
      name: 'timeouts',
      topics: ['orders.*'],
      errorClasses: undefined,
      fingerprints: undefined,
      delayMs: 300_000,
      backoff: 2,
      canary: undefined,
      maxAttempts: 3,
      ratePerSecond: 10,
    },
  ]);
  for (const key of ['name', 'topics', 'delay'])
    assert.deepEqual(flawOf({ [key]: null }), [`dlq.auto_retry[0].${key}`, 'is missing']);
});

test('policies may be in a variable, as JSON', () => {
  const env = { DLQ_AUTO_RETRY: JSON.stringify([timeouts]), KAFKA_BROKERS: 'kafka:9092' };
  assert.equal(load({ env }).dlq.autoRetry[0]?.name, 'timeouts');
});

test('an unknown field is refused, with the one that was meant', () => {
  const { path, reason, suggestion } = problemOf(() => loadPolicies([{ ...timeouts, error_class: ['x'] }]));
  assert.deepEqual(
    [path, reason, suggestion],
    ['dlq.auto_retry[0].error_class', 'unknown key', 'error_classes'],
  );
});

test('names are short, in small letters and unique', () => {
  for (const name of ['', 'Timeouts', '1st', 'a b', `a${'b'.repeat(40)}`, 'a.b', 7])
    assert.equal(flawOf({ name })[0], 'dlq.auto_retry[0].name');
  const { path, reason } = problemOf(() => loadPolicies([timeouts, { ...timeouts, name: 'b' }, timeouts]));
  assert.equal(path, 'dlq.auto_retry[2].name');
  assert.match(reason, /timeouts is also the name of dlq\.auto_retry\[0\]/);
});

test('a regular expression, a wildcard alone and an empty list are no topics', () => {
  for (const pattern of ['orders\\..*', '^orders', 'orders.(a|b)', '*', '.*', '', 'a b'])
    assert.equal(flawOf({ topics: [pattern] })[0], 'dlq.auto_retry[0].topics[0]', pattern);
  assert.equal(flawOf({ topics: [] })[0], 'dlq.auto_retry[0].topics');
  assert.equal(flawOf({ topics: 'orders.*' })[0], 'dlq.auto_retry[0].topics');
});

test('dead-letter topics are no topics of a policy', () => {
  for (const pattern of ['*.dlq', 'orders.dlq.v1', 'orders.*.dlq.v1']) {
    const [path, reason] = flawOf({ topics: ['orders.*', pattern] });
    assert.equal(path, 'dlq.auto_retry[0].topics[1]');
    assert.match(reason, /matches dead-letter topics; name the original topics/);
  }
});

test('error classes and fingerprints are whole ones', () => {
  for (const name of ['java.net.*', 'a b', ''])
    assert.equal(flawOf({ error_classes: [name] })[0], 'dlq.auto_retry[0].error_classes[0]');
  for (const print of [
    'v2:1f0c6d2e',
    '1f0c6d2e5b7a49d38e6f0c1a2b3d4e5f',
    'v2:1F0C6D2E5B7A49D38E6F0C1A2B3D4E5F',
  ])
    assert.equal(flawOf({ fingerprints: [print] })[0], 'dlq.auto_retry[0].fingerprints[0]');
  const fingerprints = ['v2:1f0c6d2e5b7a49d38e6f0c1a2b3d4e5f'];
  assert.deepEqual(
    loadPolicies([{ ...timeouts, fingerprints }]).dlq.autoRetry[0]?.fingerprints,
    fingerprints,
  );
});

test('delay, backoff, attempts and rate have bounds', () => {
  for (const [key, values] of [
    ['delay', ['999ms', '31d', '5', 0]],
    ['backoff', [0.5, 11, '2']],
    ['max_attempts', [0, 4, 1.5]],
    ['rate', [0, 0.05, 100_001]],
  ] as const)
    for (const value of values)
      assert.equal(flawOf({ [key]: value })[0], `dlq.auto_retry[0].${key}`, `${value}`);
  assert.match(flawOf({ max_attempts: 4 })[1], /must not be more than dlq\.max_retries/);
  const many = Array.from({ length: 101 }, (_, i) => ({
    name: `p${i}`,
    topics: ['orders.*'],
    delay: '5m',
  }));
  assert.equal(problemOf(() => loadPolicies(many)).path, 'dlq.auto_retry');
});

test('a canary has defaults, and ascending stages', () => {
  const canaryOf = (canary: object): unknown =>
    loadPolicies([{ ...timeouts, canary }]).dlq.autoRetry[0]?.canary;
  assert.deepEqual(canaryOf({}), { stages: [1, 5, 25], watchMs: 120_000, stopPercent: 10 });
  assert.deepEqual(canaryOf({ stages: [3], watch: '5s', stop_percent: 0 }), {
    stages: [3],
    watchMs: 5000,
    stopPercent: 0,
  });
  for (const [key, value] of [
    ['stages', [5, 5]],
    ['stages', []],
    ['watch', '2'],
    ['stop_percent', 100],
    ['watch_seconds', 5],
  ] as const)
    assert.equal(flawOf({ canary: { [key]: value } })[0], `dlq.auto_retry[0].canary.${key}`);
});

test('policies need Kafka: without it messages would be resolved that nobody sent', () => {
  const problems = problemsOf(() => loadPolicies([timeouts], { kafka: { enabled: false } }));
  assert.deepEqual(
    problems.map(({ path }) => path),
    ['dlq.auto_retry'],
  );
});
