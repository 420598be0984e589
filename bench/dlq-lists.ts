import { countFacets } from '../src/dlq/browse/count-facets.ts';
import { findGroup } from '../src/dlq/browse/find-group.ts';
import { listGroups, type GroupFilter } from '../src/dlq/browse/list-groups.ts';
import { listMessages } from '../src/dlq/browse/list-messages.ts';
import { listTopics } from '../src/dlq/browse/topics/list-topics.ts';
import { suggestedFields, suggestValues } from '../src/dlq/browse/suggest/suggest-values.ts';
import type { MessageFilter } from '../src/dlq/message-filter.ts';
import { indexAll } from '../src/dlq/upkeep/index-messages.ts';
import { compactCounts } from '../src/dlq/upkeep/topic-counts.ts';
import type { Queryable } from '../src/platform/postgres/database.ts';
import { sql, type Sql } from '../src/platform/postgres/sql.ts';
import { openPostgres } from './support.ts';

/**
 * The first page of every list, facets, groups and the topics' summary with a million messages: p50 and p99, and the
 * proof by EXPLAIN that no statement reads a table from end to end. A search without an index has fewer rounds.
 * node bench/dlq-lists.ts [rows]
 */
const rows = Number(process.argv[2] ?? 1_000_000);
const rounds = 200;
/** How many causes the messages have. */
const groups = 500;

const { db, stop } = await openPostgres();
try {
  await fill(rows);
  const first = { by: 'keyset', after: null, pageSize: 20 } as const;
  const lists: readonly (readonly [string, MessageFilter])[] = [
    ['all messages', {}],
    ['by status, common', { status: ['RESOLVED'] }],
    ['by status, rare', { status: ['DEAD'] }],
    ['by two statuses', { status: ['DEAD', 'PENDING'] }],
    ['by original topic', { topic: 'topic-7.v1' }],
    ['by dead-letter topic', { topic: 'topic-7.dlq.v1' }],
    ['by topic and status, common', { topic: 'topic-7.v1', status: ['RESOLVED'] }],
    ['by topic and status, rare', { topic: 'topic-7.v1', status: ['DEAD'] }],
    ['by a topic that is not there', { topic: 'nothing.v1' }],
    ['by a pattern of topics', { topic: 'topic-1*' }],
    ['by a pattern that all topics match', { topic: '*' }],
    ['by fingerprint', { fingerprint: fingerprintOf(7) }],
    ['by error class', { errorClass: 'shop.Error7' }],
    ['by error class, in the archive', { errorClass: 'shop.Error7', isArchived: true }],
    ['by key', { key: 'key-77' }],
    ['by consumer group, common', { consumerGroup: 'group-3' }],
    ['by consumer group and status, rare', { consumerGroup: 'group-3', status: ['DEAD'] }],
    ['unroutable', { isUnroutable: true }],
    ['by an hour', { since: at(rows / 2), until: at(rows / 2 + 180) }],
    ['by a rare word', { text: `w${Math.floor(rows / 3)}` }],
    ['by a word of 1000 messages', { text: 'customer 77' }],
    ['by a common word', { text: 'answer' }],
    ['by a common and a rare word', { text: 'answer customer 77 topic' }],
    ['by text and topic', { text: 'customer 77', topic: 'topic-7.v1' }],
    ['by a word that is not there', { text: 'nowhere' }],
    ['without a status and a class', { not: { status: ['RESOLVED'], errorClass: ['shop.Error7'] } }],
    ['without a common word (2 s)', { not: { text: ['answer'] } }],
  ];
  process.stdout.write(
    `\nLists with ${rows.toLocaleString('en')} messages: list and total, ${rounds} rounds\n`,
  );
  for (const [name, filter] of lists)
    await measure(name, () => listMessages(db, filter, first, { payload: 'preview' }));
  const deep = { createdAt: '2026-06-01T00:00:00.000000Z', id: '00000000-0000-0000-0000-000000000000' };
  await measure('a page deep inside, by cursor', () => listMessages(db, {}, { ...first, after: deep }));
  await measure('topics with counts', () => listTopics(db));
  for (const [name, filter] of lists.slice(0, -1))
    await measure(`facets, ${name}`, () => countFacets(db, filter));
  const firstGroups = { after: null, offset: 0, pageSize: 20 } as const;
  const groupLists: readonly (readonly [string, GroupFilter])[] = [
    ['groups', {}],
    ['groups with DEAD messages', { status: 'DEAD' }],
    ['groups of a topic', { topic: 'topic-7.v1' }],
    ['groups of a consumer group', { consumerGroup: 'group-3' }],
    ['groups of an error class', { errorClass: 'shop.Error7' }],
  ];
  for (const [name, filter] of groupLists) await measure(name, () => listGroups(db, filter, firstGroups));
  await measure('one group', () => findGroup(db, fingerprintOf(7)));
  await measure('one group with half of all messages', () => findGroup(db, fingerprintOf(0)));

  for (const field of suggestedFields)
    await measure(`suggestions of ${field}`, () =>
      suggestValues(db, { field, prefix: '7', limit: 20, names: null }),
    );

  const explained = explaining(db);
  for (const [, filter] of lists.slice(0, -1)) {
    await listMessages(explained.db, filter, first);
    await countFacets(explained.db, filter);
  }
  await listTopics(explained.db);
  for (const [, filter] of groupLists) await listGroups(explained.db, filter, firstGroups);
  for (const field of suggestedFields)
    await suggestValues(explained.db, { field, prefix: '', limit: 20, names: null });
  await findGroup(explained.db, fingerprintOf(7));
  const scans = explained.plans.filter((plan) => /Seq Scan on (?:dlq_messages|message_facets)/.test(plan));
  process.stdout.write(
    `  ${explained.plans.length} statements explained, ${scans.length} sequential scans\n`,
  );
  if (scans.length > 0) {
    process.stdout.write(`${scans[0]}\n`);
    process.exitCode = 1;
  }
} finally {
  await stop();
}

function at(i: number): Date {
  return new Date(Date.UTC(2026, 0, 1) + i * 20_000);
}

/** Half of the messages have one cause. */
async function fill(count: number): Promise<void> {
  const step = 50_000;
  const begin = performance.now();
  for (let from = 0; from < count; from += step)
    await db.query(sql`
      INSERT INTO dlq.dlq_messages
        (original_topic, error_message, payload, status, created_at, source_topic, source_topic_id,
         source_partition, source_offset, raw_value, consumer_group, fingerprint, error_class, message_key, unroutable)
      SELECT 'topic-' || i % 50 || '.v1', 'TimeoutError: no answer for customer ' || i % 1000 || ' in w' || i, '{"n": 1}',
             CASE WHEN i % 5000 = 0 THEN 'DEAD' WHEN i % 10 < 3 THEN 'PENDING' ELSE 'RESOLVED' END,
             timestamptz '2026-01-01' + i * interval '20 seconds', 'topic-' || i % 50 || '.dlq.v1',
             '00000000-0000-4000-8000-000000000000', i % 50, i, convert_to('{"n":1,"note":"' || repeat(md5(i::text) || ' ', 6) || '"}', 'UTF8'),
             'group-' || i % 5, CASE WHEN i % 2 = 0 THEN ${fingerprintOf(0)} ELSE 'v2:' || lpad(to_hex(i % ${groups}), 32, '0') END,
             'shop.Error' || i % 40, convert_to('key-' || i % 10007, 'UTF8'), i % 10000 = 0
      FROM generate_series(${from + 1}::int, ${Math.min(from + step, count)}::int) AS i`);
  const stored = performance.now();
  await indexAll(db);
  const indexed = performance.now();
  const rate = (ms: number): string => Math.round((count / ms) * 1000).toLocaleString('en');
  process.stdout.write(
    `  stored ${rate(stored - begin)} and indexed ${rate(indexed - stored)} messages per second\n`,
  );
  await db.query(sql`VACUUM ANALYZE dlq.dlq_messages, dlq.message_facets`);
  await compactCounts(db);
  await db.query(sql`VACUUM ANALYZE dlq.fingerprints, dlq.group_counts, dlq.group_changes`);
}

function fingerprintOf(i: number): string {
  return `v2:${i.toString(16).padStart(32, '0')}`;
}

async function measure(name: string, run: () => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  const endMs = performance.now() + 20_000;
  for (let i = 0; i < rounds && performance.now() < endMs; i += 1) {
    const begin = performance.now();
    await run();
    times.push(performance.now() - begin);
  }
  times.sort((a, b) => a - b);
  const quantile = (share: number): string =>
    (times[Math.floor(times.length * share)] ?? 0).toFixed(1).padStart(7);
  process.stdout.write(`  ${name.padEnd(46)} p50 ${quantile(0.5)} ms   p99 ${quantile(0.99)} ms\n`);
}

/** Runs every statement, and keeps its plan. */
function explaining(db: Queryable): Readonly<{ db: Queryable; plans: string[] }> {
  const plans: string[] = [];
  return {
    plans,
    db: {
      async query<Row>(statement: Sql) {
        if (statement.text.startsWith('EXPLAIN')) return db.query<Row>(statement);
        const plan = await db.query<{ 'QUERY PLAN': string }>(sql`EXPLAIN ${statement}`);
        plans.push(plan.map((line) => line['QUERY PLAN']).join('\n'));
        return db.query<Row>(statement);
      },
    },
  };
}
