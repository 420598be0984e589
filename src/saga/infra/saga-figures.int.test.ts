import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createMetrics, type Metrics } from '../../platform/telemetry/metrics.ts';
import { createSagaFigures, type SagaFiguresOptions } from './saga-figures.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
beforeEach(() => database.db.query(sql`TRUNCATE saga.saga_states, saga.saga_step_logs`));

async function add(status: string, count = 1, needsPerson = false): Promise<readonly string[]> {
  const rows = await database.db.query<{ id: string }>(sql`
    INSERT INTO saga.saga_states (workflow_name, status, needs_person, stuck_step, stuck_op)
    SELECT 'order', ${status}, ${needsPerson}, CASE WHEN ${needsPerson} THEN 0 END,
           CASE WHEN ${needsPerson} THEN 'EXECUTE' END
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

/** Attempts that ended so many seconds ago. */
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

/** What one round exports, as the holder of the lease. */
async function oneRound(more: Partial<SagaFiguresOptions> = {}): Promise<Readonly<Record<string, number>>> {
  const metrics = createMetrics();
  const figures = createSagaFigures(metrics, { db: database.db, ...more });
  assert.deepEqual(await samples(metrics), {}, 'who holds no lease exports nothing');
  const held = new AbortController();
  const exporting = figures.export(held.signal);
  const exported = await eventually(async () => {
    const found = await samples(metrics);
    assert.ok('saga_needs_person' in found);
    return found;
  });
  held.abort();
  await exporting;
  assert.deepEqual(await samples(metrics), {}, 'who has lost it exports nothing any more');
  return exported;
}

const active = (status: string): string => `saga_active{status="${status}"}`;
const unknown: Row = { status: 'TIMEOUT', answer: 'unknown' };

test('without a saga all figures are there, and zero', async () => {
  assert.deepEqual(await oneRound(), {
    [active('STARTED')]: 0,
    [active('RUNNING')]: 0,
    [active('COMPENSATING')]: 0,
    saga_needs_person: 0,
    saga_in_doubt_seconds: 0,
  });
});

test('what has not ended is counted by its status, up to a bound', async () => {
  await add('STARTED', 2);
  await add('RUNNING', 12);
  await add('COMPENSATING', 1, true);
  await add('COMPLETED', 5);
  const exported = await oneRound({ countedRows: 10 });
  assert.deepEqual(
    [exported[active('STARTED')], exported[active('RUNNING')], exported[active('COMPENSATING')]],
    [2, 10, 1],
  );
  assert.equal(exported['saga_needs_person'], 1);
  assert.equal(exported[active('COMPLETED')], undefined);
});

test('doubt lasts from the end of an attempt that nobody knows of, and the longest is told', async () => {
  const [young = '', old = ''] = await add('RUNNING', 2);
  const [waiting = ''] = await add('RUNNING', 1, true);
  await attempts(young, 5, [unknown]);
  await attempts(old, 100, [unknown, { status: 'FAILED', answer: 'refused' }]);
  const seconds = async () => (await oneRound())['saga_in_doubt_seconds'] ?? 0;
  assert.ok((await seconds()) >= 100 && (await seconds()) < 200, 'a later refusal does not end it');
  await attempts(waiting, 1000, [unknown]);
  assert.ok((await seconds()) >= 1000);
});

test('sagas that have waited for a slot since their claim do not hide one that is in doubt', async () => {
  await add('STARTED', 30);
  await database.db.query(sql`UPDATE saga.saga_states SET lease_epoch = 5`);
  const [running = ''] = await add('RUNNING');
  await attempts(running, 100, [{ status: 'TIMEOUT', answer: 'unknown' }]);
  assert.ok(((await oneRound({ measuredRows: 10 }))['saga_in_doubt_seconds'] ?? 0) >= 100);
});

test('a step that is known, undone or passed over is in doubt no longer, nor one that was never sent', async () => {
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
