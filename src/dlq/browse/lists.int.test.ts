import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { statuses } from '../domain/message.ts';
import { listMessages, type MessageFilter } from './list-messages.ts';
import { listTopics } from './list-topics.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, status, created_at, source_topic)
    SELECT 'topic-' || i % 20 || '.v1', 'boom', (ARRAY['PENDING', 'RESOLVED', 'RESOLVED', 'DEAD'])[1 + i % 4],
           now() - i * interval '1 second', 'topic-' || i % 20 || '.dlq.v1'
    FROM generate_series(1, 30000) AS i`);
  await database.db.query(sql`VACUUM ANALYZE dlq.dlq_messages`);
});
after(() => database.drop());

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

const filters: readonly MessageFilter[] = [
  {},
  ...statuses.map((status) => ({ status })),
  { topic: 'topic-7.v1' },
  { topic: 'topic-7.dlq.v1' },
  ...statuses.map((status) => ({ topic: 'topic-7.v1', status })),
  ...statuses.map((status) => ({ topic: 'topic-7.dlq.v1', status })),
];

test('no list, count or summary has to read the whole table', async () => {
  const plans: string[] = [];
  const db = explaining(plans);
  for (const filter of filters) await listMessages(db, filter, { by: 'keyset', after: null, pageSize: 20 });
  await listTopics(db);
  assert.ok(plans.length > 2 * filters.length);
  for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on dlq_messages/);
});

test('lists by topic and status show exactly the matching messages, newest first', async () => {
  for (const filter of filters) {
    const { messages, count } = await listMessages(database.db, filter, {
      by: 'number',
      offset: 0,
      pageSize: 100,
    });
    const isMatch = ({ originalTopic, sourceTopic, status }: (typeof messages)[number]): boolean =>
      (filter.topic === undefined || originalTopic === filter.topic || sourceTopic === filter.topic) &&
      (filter.status === undefined || status === filter.status);
    assert.ok(messages.every(isMatch));
    assert.equal(messages.length, Math.min(count.total, 100));
    const order = messages.map(({ createdAtExact, id }) => `${createdAtExact} ${id}`);
    assert.deepEqual(order, order.toSorted().toReversed());
  }
});
