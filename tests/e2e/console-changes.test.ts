import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { watchedMessages } from '../../src/dlq/index.ts';
import { watchedJobs } from '../../src/jobs/index.ts';
import { watchedOrders } from '../../src/outbox/index.ts';
import { watchedSagas } from '../../src/saga/index.ts';
import type { Database, Queryable } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { countAttention, readChanges } from '../../src/platform/work/changes/read-changes.ts';

const watched = { dlq: watchedMessages, outbox: watchedOrders, jobs: watchedJobs, sagas: watchedSagas };

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const addJob = async (queue = 'mail'): Promise<string> => {
  const [row] = await database.db.query<{ id: string }>(sql`
    INSERT INTO jobs.job_queue (queue, payload) VALUES (${queue}, '{}') RETURNING job_id AS id`);
  return row?.id ?? assert.fail();
};

test('a change is found once, with its name, and by a subtransaction too', async () => {
  const { seen } = await readChanges(database.db, watched, null);
  const id = await addJob();
  let inside = '';
  await database.db.transaction(async (tx) => {
    await tx.query(sql`SAVEPOINT one`);
    const [row] = await tx.query<{ id: string }>(sql`
      INSERT INTO jobs.job_queue (queue, payload) VALUES ('late', '{}') RETURNING job_id AS id`);
    inside = row?.id ?? '';
    await tx.query(sql`RELEASE SAVEPOINT one`);
    const during = await readChanges(database.db, watched, seen);
    assert.deepEqual(
      during.rows.map((row) => [row.slice, row.id, row.name]),
      [['jobs', id, 'mail']],
    );
    const later = await readChanges(database.db, watched, during.seen);
    assert.deepEqual(later.rows, []);
    Object.assign(seen, later.seen);
  });
  const { rows } = await readChanges(database.db, watched, seen);
  assert.ok(rows.some((row) => row.id === inside && row.name === 'late'));
});

test('while nothing is committed no row is read, and what is over is not found again', async () => {
  const first = await readChanges(database.db, watched, null);
  assert.deepEqual(first.rows, []);
  const again = await readChanges(database.db, watched, first.seen);
  assert.deepEqual(again.rows, []);
  assert.equal(again.seen.snapshot, first.seen.snapshot);
});

test('what needs attention is counted by name', async () => {
  await database.db.query(sql`
    INSERT INTO jobs.job_queue (queue, payload, status, resolution)
    VALUES ('a', '{}', 'dead_letter', NULL), ('a', '{}', 'dead_letter', NULL), ('b', '{}', 'dead_letter', NULL),
           ('b', '{}', 'dead_letter', 'discarded')`);
  const counts = await countAttention(database.db, watched, ['jobs']);
  assert.deepEqual(Object.fromEntries(counts.map(({ name, count }) => [name, count])), { a: 2, b: 1 });
});

test('no table is read as a whole, even when its statistics are older than its rows', async () => {
  await database.db.query(
    sql`ANALYZE jobs.job_queue, dlq.dlq_messages, outbox.outbox_orders, saga.saga_states`,
  );
  await database.db.query(sql`
    INSERT INTO jobs.job_queue (queue, payload, status)
    SELECT 'q' || n % 7, '{}', (ARRAY['pending', 'completed', 'completed'])[1 + n % 3] FROM generate_series(1, 20000) n`);
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, status)
    SELECT 't', 'e', (ARRAY['RESOLVED', 'PENDING'])[1 + n % 2] FROM generate_series(1, 20000) n`);
  await database.db.query(sql`
    INSERT INTO outbox.outbox_orders
      (idempotency_key, request_json, request_digest, status, next_attempt_at, destination)
    SELECT 'k' || n, '{}', 'd', (ARRAY['queued', 'sent'])[1 + n % 2], now(), 'shop' FROM generate_series(1, 20000) n`);
  await database.db.query(sql`
    INSERT INTO saga.saga_states (workflow_name, status)
    SELECT 'w', (ARRAY['COMPLETED', 'COMPLETED', 'RUNNING'])[1 + n % 3] FROM generate_series(1, 20000) n`);
  const plans: string[] = [];
  const db = explaining(plans);
  const { seen } = await readChanges(db, watched, null);
  await addJob();
  await readChanges(db, watched, seen);
  await countAttention(db, watched, Object.keys(watched));
  assert.equal(plans.length, 3);
  for (const plan of plans) {
    assert.doesNotMatch(plan, /(Seq|Bitmap Heap) Scan on (job_queue|dlq_messages|outbox_orders|saga_states)/);
    assert.doesNotMatch(plan, /Rows Removed by Filter: \d{5}/, plan);
    for (const [, rows] of plan.matchAll(/Index.*Scan.* rows=(\d+) loops=\d+\)/g))
      assert.ok(Number(rows) <= 300, plan);
  }
});

/** Whatever runs in a transaction is explained first. */
function explaining(plans: string[]): Database {
  const query =
    (tx: Queryable): Queryable['query'] =>
    async (statement) => {
      if (!/set_config/.test(statement.text)) {
        const lines = await tx.query<{ 'QUERY PLAN': string }>(sql`EXPLAIN (ANALYZE) ${statement}`);
        plans.push(lines.map((line) => line['QUERY PLAN']).join('\n'));
      }
      return tx.query(statement);
    };
  return {
    ...database.db,
    transaction: (work, options) => database.db.transaction((tx) => work({ query: query(tx) }), options),
  };
}
