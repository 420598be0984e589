import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { runTasks } from '../../platform/work/retention-tasks.ts';
import { planExpiry, redriveRetention } from './redrive-retention.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

test('items live for 30 days after the end, receipts for 400, and those of a paused redrive as long as it', async () => {
  const { db } = database;
  const ages = [
    { state: 'finished', days: 29, keeps: [12, 1] },
    { state: 'cancelled', days: 31, keeps: [0, 1] },
    { state: 'expired', days: 401, keeps: [0, 0] },
    { state: 'paused', days: 500, keeps: [12, 1] },
  ] as const;
  for (const { state, days } of ages)
    await db.query(sql`
      WITH redrive AS (
        INSERT INTO dlq.redrives (id, state, filter, options, actor, reason, finished_at)
        VALUES (gen_random_uuid(), ${state}, '{}', '{}', 'alice', 'fixed',
                clock_timestamp() - ${days} * interval '1 day')
        RETURNING id)
      INSERT INTO dlq.redrive_items (redrive_id, position, message_id, planned_epoch, target)
      SELECT redrive.id, n, gen_random_uuid(), 0, 'orders.v1' FROM redrive, generate_series(1, 12) AS n`);
  const counts = await runTasks(redriveRetention(db, 5), new AbortController().signal);
  assert.deepEqual(counts, { items: 24, redrives: 1 });
  for (const { state, keeps } of ages) {
    const [row] = await db.query<{ items: number; redrives: number }>(sql`
      SELECT (SELECT count(*)::int FROM dlq.redrive_items i JOIN dlq.redrives r ON r.id = i.redrive_id
              WHERE r.state = ${state}) AS items,
             (SELECT count(*)::int FROM dlq.redrives WHERE state = ${state}) AS redrives`);
    assert.deepEqual([row?.items, row?.redrives], keeps, state);
  }
});

test('a plan that was not started for a day expires, and nothing else does', async () => {
  const { db } = database;
  await db.query(sql`
    INSERT INTO dlq.redrives (id, state, filter, options, actor, reason, planned_at)
    SELECT gen_random_uuid(), state, '{}', '{}', 'bob', 'fixed', clock_timestamp() - hours * interval '1 hour'
    FROM (VALUES ('planned', 23.9), ('planned', 24.1), ('running', 24.1), ('paused', 24.1)) AS given (state, hours)`);
  assert.deepEqual(await runTasks([planExpiry(db)], new AbortController().signal), { plans: 1 });
  const rows = await db.query<{ state: string; state_reason: string | null }>(sql`
    SELECT state, state_reason FROM dlq.redrives WHERE actor = 'bob' ORDER BY state`);
  assert.deepEqual(
    rows.map((row) => row.state),
    ['expired', 'paused', 'planned', 'running'],
  );
  assert.equal(rows[0]?.state_reason, 'it was not started within 24 hours');
});
