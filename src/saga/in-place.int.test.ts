import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { emptySagas } from '../../tests/support/empty-sagas.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { openSagaScene, stepOf, type SagaScene } from '../../tests/support/saga-engine.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import { statuses, type Status } from './domain/saga-state.ts';
import type { Workflow } from './domain/workflow/workflow.ts';
import { hasStatus } from './saga-table.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());

const workflow: Workflow = {
  name: 'order',
  deadlineMs: null,
  steps: [stepOf('reserve'), stepOf('charge'), stepOf('ship')],
};

/** A connection that is idle tells what it has counted after ten seconds, on a busy machine later. */
const untilFlushed = { withinMs: 90_000 };

test('between its first call and its end the row of a saga is changed in place, and so is each attempt', async (t) => {
  const ids = await Promise.all(Array.from({ length: 20 }, () => at.start(workflow)));
  const engine = at.newEngine();
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  for (const id of ids) await at.ends(id, 'COMPLETED');
  await eventually(async () => {
    const rows = await at.db.query<{ name: string; updates: number; moved: number }>(sql`
      SELECT relname AS name, n_tup_upd::int AS updates, (n_tup_upd - n_tup_hot_upd)::int AS moved
      FROM pg_stat_user_tables WHERE schemaname = 'saga' AND relname IN ('saga_states', 'saga_step_logs') ORDER BY 1`);
    const [states, logs] = rows;
    assert.ok((states?.updates ?? 0) >= 5 * 20 && (logs?.updates ?? 0) >= 3 * 20, 'not yet told');
    // With its claim, its first call and its end (decision 0065), and where a page is full, which long snapshots of others make more likely: not always.
    assert.ok((states?.moved ?? 0) < 4 * 20, `${states?.moved} of ${states?.updates} got new index entries`);
    assert.ok(
      (logs?.moved ?? 0) < 1.5 * 20,
      `${logs?.moved} of ${logs?.updates} attempts got new index entries`,
    );
  }, untilFlushed);
});

test('each status is found by the phases, whether a saga was claimed before or not', async () => {
  await emptySagas(at.db);
  const added: Record<string, string[]> = {};
  for (const status of statuses)
    for (const epoch of [0, 1]) {
      const [row] = await at.db.query<{ id: string }>(sql`
        INSERT INTO saga.saga_states (workflow_name, status, lease_epoch) VALUES ('order', ${status}, ${epoch}) RETURNING id`);
      (added[status] ??= []).push(row?.id ?? '');
    }
  const found = async (isOf: Sql): Promise<readonly string[]> =>
    (
      await at.db.query<{ id: string }>(sql`SELECT t.id FROM saga.saga_states t WHERE ${isOf} ORDER BY t.id`)
    ).map(({ id }) => id);
  for (const status of statuses) assert.deepEqual(await found(hasStatus(status)), added[status]?.toSorted());
});

test('those that run are found among a hundred thousand that wait, without looking at these', async () => {
  await emptySagas(at.db);
  await at.db.query(sql`
    INSERT INTO saga.saga_states (workflow_name, status, lease_epoch)
    SELECT 'order', CASE WHEN n % 10000 = 0 THEN 'RUNNING' ELSE 'STARTED' END, CASE WHEN n % 10000 = 0 THEN 1 ELSE 0 END
    FROM generate_series(1, 100000) n`);
  await at.db.query(sql`VACUUM ANALYZE saga.saga_states`);
  const status: Status = 'RUNNING';
  const plan = await at.db.query<{ 'QUERY PLAN': string }>(sql`
    EXPLAIN (ANALYZE, TIMING OFF) SELECT 1 FROM saga.saga_states t WHERE ${hasStatus(status)}`);
  const text = plan.map((line) => line['QUERY PLAN']).join('\n');
  assert.match(text, /idx_saga_states_status/);
  assert.doesNotMatch(text, /Rows Removed by Filter: \d{2,}/);
});

test('a change by hand is dated by the trigger, and one of ours by itself', async () => {
  const [row] = await at.db.query<{ id: string }>(sql`
    INSERT INTO saga.saga_states (workflow_name, updated_at) VALUES ('order', '2020-01-01') RETURNING id`);
  await at.db.query(sql`UPDATE saga.saga_states SET correlation_id = 'x' WHERE id = ${row?.id}`);
  const [changed] = await at.db.query<{ is_new: boolean }>(sql`
    SELECT updated_at > now() - interval '1 minute' AS is_new FROM saga.saga_states WHERE id = ${row?.id}`);
  assert.equal(changed?.is_new, true);
});
