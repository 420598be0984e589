import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { statuses } from '../domain/message.ts';
import type { MessageFilter } from '../message-filter.ts';
import { indexAll } from '../upkeep/index-messages.ts';
import { countFacets } from './count-facets.ts';
import { listMessages } from './list-messages.ts';
import { listTopics } from './topics/list-topics.ts';
import { suggestedFields, suggestValues, type SuggestedField } from './suggest/suggest-values.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, status, created_at, source_topic, error_class, consumer_group, message_key,
       fingerprint, unroutable)
    SELECT 'topic-' || i % 20 || '.v1', 'boom number ' || i, (ARRAY['PENDING', 'RESOLVED', 'RESOLVED', 'DEAD'])[1 + i % 4],
           now() - i * interval '1 second', 'topic-' || i % 20 || '.dlq.v1', 'x.E' || i % 30, 'group-' || i % 10,
           convert_to('key-' || i % 5000, 'UTF8'), 'v2:' || i % 100, i % 1000 = 0
    FROM generate_series(1, 20000) AS i`);
  await indexAll(database.db);
  await database.db.query(sql`VACUUM ANALYZE dlq.dlq_messages, dlq.message_facets`);
});
after(() => database.drop());

/** Runs every statement and records its plan with sequential scans disabled. */
function explaining(plans: string[]): Queryable {
  return {
    async query<Row>(statement: Sql) {
      if (statement.text.startsWith('EXPLAIN')) return database.db.query<Row>(statement);
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
  ...statuses.map((status) => ({ status: [status] })),
  { topic: 'topic-7.v1' },
  { topic: 'topic-7.dlq.v1' },
  ...statuses.map((status) => ({ topic: 'topic-7.v1', status: [status] })),
  ...statuses.map((status) => ({ topic: 'topic-7.dlq.v1', status: [status] })),
];

const searches: readonly MessageFilter[] = [
  { topic: 'topic-1*' },
  { topic: 'topic-1*', status: ['DEAD', 'PENDING'] },
  { topic: '*', status: ['DEAD'] },
  { fingerprint: 'v2:7' },
  { fingerprint: 'v2:7', status: ['DEAD'] },
  { errorClass: 'x.E7' },
  { errorClass: 'x.E7', topic: 'topic-7.v1' },
  { key: 'key-77' },
  { consumerGroup: 'group-3', status: ['DEAD'] },
  { isUnroutable: true },
  { hasEdit: true },
  { text: 'boom' },
  { text: 'number 777' },
  { text: 'number 777', errorClass: 'x.E7' },
  { since: new Date(Date.now() - 3_600_000), until: new Date() },
  { not: { status: ['DEAD'], errorClass: ['x.E1'], text: ['777'] } },
];

test('no list, count or summary has to read the whole table', async () => {
  const plans: string[] = [];
  const db = explaining(plans);
  for (const filter of [...filters, ...searches]) {
    await listMessages(db, filter, { by: 'keyset', after: null, pageSize: 20 });
    await countFacets(db, filter);
  }
  await listTopics(db);
  await listTopics(db, { topic: 'topic-7.v1' });
  assert.ok(plans.length > 2 * filters.length);
  for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on (?:dlq_messages|message_facets)/);
  assert.ok(plans.some((plan) => plan.includes('Bitmap Index Scan on idx_dlq_facets_search')));
});

test('a topic says where its messages came from, and how many of them have no route', async () => {
  const { topics } = await listTopics(database.db, { topic: 'topic-0.v1' });
  assert.deepEqual(
    topics.map(({ topic, sources, unroutable }) => ({ topic, sources, unroutable })),
    [{ topic: 'topic-0.v1', sources: ['topic-0.dlq.v1'], unroutable: 20 }],
  );
});

test('no suggestion has to read the whole table', async () => {
  const plans: string[] = [];
  const db = explaining(plans);
  for (const field of suggestedFields) {
    const { values } = await suggestValues(db, { field, prefix: '', limit: 20, names: null });
    assert.notEqual(values.length, 0, field);
  }
  for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on (?:dlq_messages|message_facets)/);
});

test('suggestions have only what a narrowed role may see', async () => {
  const names = [[['topic-7.*']]];
  const suggested = async (field: SuggestedField) => {
    const { values } = await suggestValues(database.db, { field, prefix: '', limit: 50, names });
    return values.map(({ value }) => value).toSorted();
  };
  assert.deepEqual(await suggested('topic'), ['topic-7.v1']);
  assert.deepEqual(await suggested('error_class'), ['x.E17', 'x.E27', 'x.E7']);
  assert.deepEqual(await suggested('consumer_group'), ['group-7']);
  assert.deepEqual(await suggested('fingerprint'), ['v2:27', 'v2:47', 'v2:67', 'v2:7', 'v2:87']);
  for (const key of await suggested('key')) assert.match(key, /^key-\d*7$/);
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
      (filter.status?.includes(status) ?? true);
    assert.ok(messages.every(isMatch));
    assert.equal(messages.length, Math.min(count.total, 100));
    const order = messages.map(({ createdAtExact, id }) => `${createdAtExact} ${id}`);
    assert.deepEqual(order, order.toSorted().toReversed());
  }
});
