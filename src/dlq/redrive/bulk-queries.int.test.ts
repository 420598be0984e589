import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { isDue } from '../messages-table.ts';
import type { Keyset } from '../stored-message.ts';
import { inBulkCall, startBulk } from './bulk-queries.ts';
import { mustRunAlone } from './claim-messages.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, payload, raw_value, source_topic, source_topic_id, source_partition,
       source_offset, created_at)
    SELECT 'orders', 'no answer', '{}', convert_to(repeat('x', 500), 'UTF8'), 'orders.dlq', gen_random_uuid(), 0, i,
           now() - interval '1 hour' + i * interval '1 millisecond'
    FROM generate_series(1, 20000) AS i`);
  await database.db.query(sql`ANALYZE dlq.dlq_messages`);
});
after(() => database.drop());

async function planFrom(cursor: Keyset | null): Promise<string> {
  const { db } = database;
  const filter = inBulkCall({
    topic: 'orders',
    names: null,
    by: 'original',
    since: await startBulk(db),
    after: cursor,
    onlyUnroutable: false,
    excluded: { targets: [], notAllowed: [], keys: [], valueless: true },
  });
  const lines = await db.query<{ 'QUERY PLAN': string }>(sql`
    EXPLAIN SELECT t.ctid FROM dlq.dlq_messages t
    WHERE ${filter} AND NOT ${mustRunAlone} AND ${isDue} AND NOT t.unroutable
    ORDER BY t.created_at, t.id LIMIT 1000 FOR UPDATE SKIP LOCKED`);
  return lines.map((line) => line['QUERY PLAN']).join('\n');
}

test('a batch of a bulk call is read in the order of an index, also near the end of a backlog', async () => {
  const [late] = await database.db.query<Keyset>(sql`
    SELECT created_at::text AS "createdAt", id FROM dlq.dlq_messages ORDER BY created_at OFFSET 15000 LIMIT 1`);
  for (const cursor of [null, late ?? assert.fail('no row')]) {
    const plan = await planFrom(cursor);
    assert.match(plan, /Index Scan/);
    assert.doesNotMatch(plan, /Sort|Seq Scan on dlq_messages|Bitmap/);
  }
});
