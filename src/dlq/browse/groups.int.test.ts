import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { deriveFingerprints } from '../upkeep/derive-fingerprints.ts';
import { clearPayloads } from '../domain/payloads.ts';
import { compactCounts } from '../upkeep/topic-counts.ts';
import { findGroup } from './find-group.ts';
import { listGroups, type GroupFilter } from './list-groups.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
});
after(() => database.drop());
beforeEach(() =>
  database.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.dlq_messages_archive, dlq.fingerprints`),
);

const firstPage = { after: null, offset: 0, pageSize: 20 } as const;
const digits = (i: number): string => i.toString(16).padStart(32, '0');
const print = (i: number): string => `v2:${digits(i)}`;

async function store(count: number, groups: number): Promise<void> {
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, status, created_at, consumer_group, fingerprint)
    SELECT 'topic-' || i % 5 || '.v1', 'boom ' || i, (ARRAY['PENDING', 'RESOLVED', 'RESOLVED', 'DEAD'])[1 + i % 4],
           clock_timestamp() - i * interval '1 second', 'group-' || i % 3,
           'v2:' || lpad(to_hex(i % ${groups}), 32, '0')
    FROM generate_series(1, ${count}::int) AS i`);
}

/** What the counts must be, from the messages themselves. */
async function countedFromMessages(): Promise<unknown> {
  return database.db.query(sql`
    SELECT fingerprint, original_topic, COALESCE(consumer_group, '') AS consumer_group, status, count(*) AS messages
    FROM dlq.dlq_messages WHERE fingerprint IS NOT NULL GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`);
}

async function figures(): Promise<unknown> {
  return database.db.query(sql`
    SELECT fingerprint, original_topic, consumer_group, status, sum(messages)::bigint AS messages
    FROM dlq.group_figures GROUP BY 1, 2, 3, 4 HAVING sum(messages) <> 0 ORDER BY 1, 2, 3, 4`);
}

test('the counts follow every change of a message, folded or not', async () => {
  const { db } = database;
  await store(200, 7);
  const changes: readonly Sql[] = [
    sql`UPDATE dlq.dlq_messages SET status = 'RETRYING' WHERE status = 'PENDING'`,
    sql`UPDATE dlq.dlq_messages SET fingerprint = ${print(99)} WHERE fingerprint = ${print(1)}`,
    sql`UPDATE dlq.dlq_messages SET consumer_group = NULL, original_topic = 'x.v1' WHERE fingerprint = ${print(2)}`,
    sql`DELETE FROM dlq.dlq_messages WHERE fingerprint = ${print(3)}`,
    sql`UPDATE dlq.dlq_messages SET fingerprint = NULL WHERE fingerprint = ${print(4)}`,
  ];
  for (const change of changes) {
    await db.query(change);
    assert.deepEqual(await figures(), await countedFromMessages());
    await compactCounts(db);
    assert.deepEqual(await figures(), await countedFromMessages());
  }
  await db.call(sql`CALL dlq.archive_old_dlq_messages(-1)`);
  assert.deepEqual(await figures(), await countedFromMessages());
  await db.query(sql`TRUNCATE dlq.dlq_messages`);
  assert.deepEqual(await figures(), []);
});

test('hours older than a day are folded into one, and no count is lost', async () => {
  const { db } = database;
  await store(50, 3);
  await db.query(sql`UPDATE dlq.group_changes SET hour = hour - interval '30 hours' WHERE status = 'DEAD'`);
  await compactCounts(db);
  await db.query(sql`UPDATE dlq.group_counts SET hour = hour - interval '26 hours' WHERE status = 'PENDING'`);
  const before = await figures();
  await compactCounts(db);
  assert.deepEqual(await figures(), before);
  const [row] = await db.query(sql`
    SELECT count(*) FILTER (WHERE hour > 'epoch' AND status IN ('DEAD', 'PENDING')) AS late,
           (SELECT count(*) FROM dlq.group_changes) AS changes FROM dlq.group_counts`);
  assert.deepEqual(row, { late: 0n, changes: 0n });
});

/** Runs every statement and records its plan with sequential scans disabled. */
function explaining(plans: string[]): Queryable {
  return {
    async query<Row>(statement: Sql) {
      await database.db.transaction(async (tx) => {
        await tx.query(sql`SET LOCAL enable_seqscan = off`);
        const plan = await tx.query<{ 'QUERY PLAN': string }>(sql`EXPLAIN ${statement}`);
        plans.push(plan.map((line) => line['QUERY PLAN']).join('\n'));
      });
      return database.db.query<Row>(statement);
    },
  };
}

const filters: readonly GroupFilter[] = [
  {},
  { status: 'DEAD' },
  { topic: 'topic-3.v1' },
  { consumerGroup: 'group-2' },
  { fingerprint: print(5) },
  { topic: 'topic-3.v1', status: 'PENDING', consumerGroup: 'group-1' },
];

test('no page of groups, and no group, has to read the messages or the counts from end to end', async () => {
  await store(20_000, 300);
  await compactCounts(database.db);
  await database.db.query(sql`VACUUM ANALYZE dlq.dlq_messages, dlq.fingerprints, dlq.group_counts`);
  const plans: string[] = [];
  const db = explaining(plans);
  for (const filter of filters) await listGroups(db, filter, firstPage);
  await findGroup(db, print(5));
  assert.ok(plans.length >= 2 * filters.length);
  for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan/);
  // The sort would come first if the index did not have the order of the list.
  assert.match(plans[1] ?? '', /Index Scan Backward using idx_dlq_fingerprints_last_at/);
});

test('filters count what they match, and pages have every group once, the latest first', async () => {
  await store(3000, 120);
  await compactCounts(database.db);
  for (const filter of filters) {
    const expected = await database.db.query<{ fingerprint: string; count: number }>(sql`
      SELECT fingerprint, count(*)::int AS count FROM dlq.dlq_messages
      WHERE ${filter.topic ?? null}::text IS NULL OR original_topic = ${filter.topic ?? null}
      GROUP BY fingerprint`);
    const found = new Map<string, number>();
    const order: string[] = [];
    for (let after: Readonly<{ lastAt: string; fingerprint: string }> | null = null; ;) {
      const page = await listGroups(database.db, filter, { after, offset: 0, pageSize: 17 });
      for (const group of page.groups) {
        assert.ok(!found.has(group.fingerprint));
        found.set(
          group.fingerprint,
          Object.values(group.counts).reduce((sum, one) => sum + one, 0),
        );
        order.push(`${group.lastAtExact} ${group.fingerprint}`);
      }
      const last = page.groups.at(-1);
      if (!page.hasNext || last === undefined) {
        assert.equal(page.count.total, found.size);
        break;
      }
      after = { lastAt: last.lastAtExact, fingerprint: last.fingerprint };
    }
    assert.deepEqual(order, order.toSorted().toReversed());
    if (filter.status === undefined && filter.consumerGroup === undefined && filter.fingerprint === undefined)
      assert.deepEqual(found, new Map(expected.map((one) => [one.fingerprint, one.count])));
  }
});

test('fingerprints are derived again without touching the messages, and a locked one is left for the next run', async () => {
  const { db } = database;
  await db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, error_class, status, fingerprint, updated_at, lease_epoch)
    SELECT 'a.v1', 'order ' || i || ' is locked', 'x.Locked', 'DEAD', CASE WHEN i % 2 = 0 THEN 'v1:' || i END,
           '2026-01-01Z', i
    FROM generate_series(1, 1200) AS i`);
  await db.call(sql`CALL dlq.archive_old_dlq_messages(-1)`);
  await db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, error_class, fingerprint, updated_at, lease_epoch)
    SELECT 'a.v1', 'order ' || i || ' is locked', 'x.Locked', CASE WHEN i % 2 = 0 THEN 'v1:' || i END, '2026-01-01Z', i
    FROM generate_series(1, 1200) AS i`);
  const untouched = sql`
    SELECT min(updated_at) = max(updated_at) AND max(updated_at) = '2026-01-01Z' AND sum(lease_epoch) = 720600 AS ok
    FROM dlq.dlq_messages`;
  const first = await db.transaction(async (tx) => {
    await tx.query(sql`SELECT 1 FROM dlq.dlq_messages WHERE lease_epoch <= 10 FOR UPDATE`);
    return deriveFingerprints({ db, payloads: clearPayloads });
  });
  assert.deepEqual(first, { changed: 2390, skipped: 10 });
  assert.deepEqual(await deriveFingerprints({ db, payloads: clearPayloads }), { changed: 10, skipped: 0 });
  assert.deepEqual(await deriveFingerprints({ db, payloads: clearPayloads }), { changed: 0, skipped: 0 });
  assert.deepEqual(await db.query(untouched), [{ ok: true }]);
  assert.deepEqual(await figures(), await countedFromMessages());
  const { groups } = await listGroups(db, {}, firstPage);
  assert.equal(groups.length, 1);
  assert.deepEqual(
    [groups[0]?.errorClass, groups[0]?.template, groups[0]?.version, groups[0]?.counts.PENDING],
    ['x.Locked', 'order <n> is locked', 2, 1200],
  );
  await db.query(sql`UPDATE dlq.dlq_messages SET fingerprint = NULL`);
  assert.notDeepEqual(await db.query(untouched), [{ ok: true }], 'any other update is seen in updated_at');
});
