import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { load as loadConfig } from '../../../tests/support/test-config.ts';
import { costs, formulas, planCapacity, type Load } from './capacity.ts';

const load: Load = {
  replicas: 3,
  perDay: { dlq: 0, outbox: 1_000_000, jobs: 0, saga: 1000 },
  payloadBytes: 1000,
  callMs: 100,
  steps: 4,
};
const env = { DATABASE_HOST: 'db', DATABASE_MAX_OPEN_CONNS: '20' };
const planOf = (more: NodeJS.ProcessEnv = {}) => planCapacity(loadConfig({ env: { ...env, ...more } }), load);
const sliceOf = (name: string, more: NodeJS.ProcessEnv = {}) =>
  planOf(more).slices.find(({ slice }) => slice === name) ?? assert.fail();

test('connections count the pool, LISTEN and the direct target of every replica', () => {
  assert.equal(planOf().connections, 63);
  assert.equal(planOf({ DATABASE_WAKE: 'poll' }).connections, 60);
  assert.equal(planOf({ DATABASE_DIRECT_URL: 'postgres://db2/x' }).connections, 69);
});

test('the rate is that of the calls in flight, and at most what PostgreSQL settles', () => {
  const slow = sliceOf('outbox', { OUTBOX_BATCH_SIZE: '10', OUTBOX_PARALLELISM: '2' });
  assert.deepEqual([slow.inFlight, slow.perSecond, slow.drainSeconds], [60, 600, 1_000_000 / 600]);
  const fast = sliceOf('outbox', { OUTBOX_BATCH_SIZE: '500', OUTBOX_PARALLELISM: '4' });
  assert.equal(fast.perSecond, costs.outbox.settledPerSecond);
});

test('rows, bytes and WAL of a saga count its steps', () => {
  const { saga, step } = costs;
  const plan = sliceOf('saga');
  assert.equal(plan.rowsPerDay, 1000 * (saga.rows + 4 * step.rows));
  assert.equal(plan.bytesPerDay, 1000 * (saga.bytes + 1000 + 4 * (step.bytes + 1000)));
  assert.equal(plan.walBytesPerDay, 1000 * (saga.walBytes + 2000 + 4 * (step.walBytes + 2000)));
});

test('docs/capacity.md has these formulas and these figures', () => {
  const text = readFileSync(new URL('../../../docs/capacity.md', import.meta.url), 'utf8');
  for (const formula of Object.values(formulas)) assert.ok(text.includes(`| ${formula} |`), formula);
  for (const [name, { rows, bytes, walBytes, settledPerSecond }] of Object.entries(costs)) {
    const row = `| ${name} | ${rows} | ${bytes} | ${walBytes} | ${settledPerSecond} |`;
    assert.ok(text.includes(row), row);
  }
});
