import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { emptySagas } from '../../../tests/support/empty-sagas.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createMetrics, type Metrics } from '../../platform/telemetry/metrics.ts';
import { clearGauges } from '../../platform/work/gauges.ts';
import { sagaGauges, type SagaGaugesOptions } from './gauges.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
beforeEach(() => emptySagas(database.db));

async function add(status: string, count = 1, needsAttention = false): Promise<readonly string[]> {
  const rows = await database.db.query<{ id: string }>(sql`
    INSERT INTO saga.saga_states (workflow_name, status, needs_attention, stuck_step, stuck_op)
    SELECT 'order', ${status}, ${needsAttention}, CASE WHEN ${needsAttention} THEN 0 END,
           CASE WHEN ${needsAttention} THEN 'EXECUTE' END
    FROM generate_series(1, ${count}::int)
    RETURNING id`);
  return rows.map(({ id }) => id);
}

type Row = Readonly<{
  step?: number;
  action?: string;
  status: string;
  answer: string | null;
  isUnsent?: boolean;
}>;

/** Attempts that ended this many seconds ago. */
async function attempts(sagaId: string, secondsAgo: number, rows: readonly Row[]): Promise<void> {
  for (const [i, { step = 0, action = 'EXECUTE', status, answer, isUnsent = false }] of rows.entries())
    await database.db.query(sql`
      INSERT INTO saga.saga_step_logs
        (saga_id, step_index, step_name, action, status, attempt, answer, is_unsent, completed_at)
      VALUES (${sagaId}, ${step}, 'step', ${action}, ${status}, ${i + 1}, ${answer}, ${isUnsent},
              now() - ${secondsAgo} * interval '1 second')`);
}

async function samples(metrics: Metrics): Promise<Readonly<Record<string, number>>> {
  const lines = (await metrics.render()).split('\n').filter((line) => line.startsWith('saga_'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
}

/** The series of one measurement. */
async function oneRound(more: Partial<SagaGaugesOptions> = {}): Promise<Readonly<Record<string, number>>> {
  const metrics = createMetrics();
  const gauges = sagaGauges(metrics, { db: database.db, ...more });
  const set = await gauges.measure();
  clearGauges(gauges);
  set();
  return samples(metrics);
}

const active = (status: string): string => `saga_active{status="${status}"}`;
const unknown: Row = { status: 'TIMEOUT', answer: 'unknown' };

test('without a saga all gauges are zero', async () => {
  assert.deepEqual(await oneRound(), {
    [active('STARTED')]: 0,
    [active('RUNNING')]: 0,
    [active('COMPENSATING')]: 0,
    saga_needs_attention: 0,
    saga_compensations_stuck: 0,
    saga_in_doubt_seconds: 0,
  });
});

test('sagas that have not ended are counted by status, up to a limit', async () => {
  await add('STARTED', 2);
  await add('RUNNING', 12);
  await add('COMPENSATING', 1, true);
  await add('COMPLETED', 5);
  const exported = await oneRound({ countedRows: 10 });
  assert.deepEqual(
    [exported[active('STARTED')], exported[active('RUNNING')], exported[active('COMPENSATING')]],
    [2, 10, 1],
  );
  assert.equal(exported['saga_needs_attention'], 1);
  assert.equal(exported['saga_compensations_stuck'], 1);
  assert.equal(exported[active('COMPLETED')], undefined);
});

test('the doubt of a step starts with its unknown attempt, and the longest one is exported', async () => {
  const [young = '', old = ''] = await add('RUNNING', 2);
  const [waiting = ''] = await add('RUNNING', 1, true);
  await attempts(young, 5, [unknown]);
  await attempts(old, 100, [unknown, { status: 'FAILED', answer: 'refused' }]);
  const seconds = async () => (await oneRound())['saga_in_doubt_seconds'] ?? 0;
  assert.ok((await seconds()) >= 100 && (await seconds()) < 200, 'a later refusal does not end it');
  await attempts(waiting, 1000, [unknown]);
  assert.ok((await seconds()) >= 1000);
  const since = (await oneRound())['saga_in_doubt_since_timestamp_seconds'] ?? 0;
  assert.ok(Math.abs(Date.now() / 1000 - 1000 - since) < 100, String(since));
});

test('sagas that wait for a slot do not hide one that is in doubt', async () => {
  await add('STARTED', 30);
  await database.db.query(sql`UPDATE saga.saga_states SET lease_epoch = 5`);
  const [running = ''] = await add('RUNNING');
  await attempts(running, 100, [{ status: 'TIMEOUT', answer: 'unknown' }]);
  assert.ok(((await oneRound({ measuredRows: 10 }))['saga_in_doubt_seconds'] ?? 0) >= 100);
});

test('a step with a known outcome, a compensated or skipped one, or one that was never sent is not in doubt', async () => {
  const ends: readonly Row[] = [
    { status: 'SUCCESS', answer: 'done' },
    { status: 'FAILED', answer: 'not_done' },
    { status: 'SKIPPED', answer: null },
    { action: 'COMPENSATE', status: 'SUCCESS', answer: 'done' },
    { action: 'COMPENSATE', status: 'SKIPPED', answer: null },
  ];
  for (const end of ends) {
    const [id = ''] = await add('COMPENSATING');
    await attempts(id, 100, [unknown, end]);
  }
  const [unsent = '', undo = '', ended = ''] = await add('COMPENSATING', 3);
  await attempts(unsent, 100, [{ ...unknown, isUnsent: true }]);
  await attempts(undo, 100, [{ ...unknown, action: 'COMPENSATE' }]);
  await attempts(ended, 100, [unknown]);
  await database.db.query(sql`UPDATE saga.saga_states SET status = 'FAILED' WHERE id = ${ended}`);
  assert.equal((await oneRound())['saga_in_doubt_seconds'], 0);
});
