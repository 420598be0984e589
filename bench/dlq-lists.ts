import { findGroup } from '../src/dlq/browse/find-group.ts';
import { listGroups, type GroupFilter } from '../src/dlq/browse/list-groups.ts';
import { listMessages } from '../src/dlq/browse/list-messages.ts';
import { listTopics } from '../src/dlq/browse/list-topics.ts';
import type { MessageFilter } from '../src/dlq/message-filter.ts';
import { compactCounts } from '../src/dlq/upkeep/topic-counts.ts';
import type { Queryable } from '../src/platform/postgres/database.ts';
import { sql, type Sql } from '../src/platform/postgres/sql.ts';
import { openGround, type Ground } from './support.ts';

/**
 * The first page of every list, of the groups, and the topics' summary with a million messages in the table: p50 and p99, and
 * the proof by EXPLAIN that no statement reads the table from end to end.
 * node bench/dlq-lists.ts [rows]
 */
const rows = Number(process.argv[2] ?? 1_000_000);
const rounds = 200;
/** How many causes the messages have. */
const groups = 500;

const ground = await openGround();
try {
  await fill(ground, rows);
  const first = { by: 'keyset', after: null, pageSize: 20 } as const;
  const lists: readonly (readonly [string, MessageFilter])[] = [
    ['all messages', {}],
    ['by status, common', { status: ['RESOLVED'] }],
    ['by status, rare', { status: ['DEAD'] }],
    ['by original topic', { topic: 'topic-7.v1' }],
    ['by dead-letter topic', { topic: 'topic-7.dlq.v1' }],
    ['by topic and status, common', { topic: 'topic-7.v1', status: ['RESOLVED'] }],
    ['by topic and status, rare', { topic: 'topic-7.v1', status: ['DEAD'] }],
    ['by a topic that is not there', { topic: 'nothing.v1' }],
  ];
  process.stdout.write(
    `\nLists with ${rows.toLocaleString('en')} messages: list and total, ${rounds} rounds\n`,
  );
  for (const [name, filter] of lists) await measure(name, () => listMessages(ground.db, filter, first));
  const deep = { createdAt: '2026-06-01T00:00:00.000000Z', id: '00000000-0000-0000-0000-000000000000' };
  await measure('a page deep inside, by cursor', () =>
    listMessages(ground.db, {}, { ...first, after: deep }),
  );
  await measure('topics with counts', () => listTopics(ground.db));
  const firstGroups = { after: null, offset: 0, pageSize: 20 } as const;
  const groupLists: readonly (readonly [string, GroupFilter])[] = [
    ['groups', {}],
    ['groups with DEAD messages', { status: 'DEAD' }],
    ['groups of a topic', { topic: 'topic-7.v1' }],
    ['groups of a consumer group', { consumerGroup: 'group-3' }],
  ];
  for (const [name, filter] of groupLists)
    await measure(name, () => listGroups(ground.db, filter, firstGroups));
  await measure('one group', () => findGroup(ground.db, fingerprintOf(7)));

  const explained = explaining(ground.db);
  for (const [, filter] of lists) await listMessages(explained.db, filter, first);
  await listTopics(explained.db);
  for (const [, filter] of groupLists) await listGroups(explained.db, filter, firstGroups);
  await findGroup(explained.db, fingerprintOf(7));
  const scans = explained.plans.filter((plan) => /Seq Scan on dlq_messages/.test(plan));
  process.stdout.write(
    `  ${explained.plans.length} statements explained, ${scans.length} sequential scans\n`,
  );
  if (scans.length > 0) {
    process.stdout.write(`${scans[0]}\n`);
    process.exitCode = 1;
  }
} finally {
  await ground.stop();
}

async function fill({ db }: Ground, count: number): Promise<void> {
  const step = 100_000;
  for (let from = 0; from < count; from += step)
    await db.query(sql`
      INSERT INTO dlq.dlq_messages
        (original_topic, error_message, payload, status, created_at, source_topic, source_topic_id,
         source_partition, source_offset, raw_value, consumer_group, fingerprint)
      SELECT 'topic-' || i % 50 || '.v1', 'TimeoutError: no answer', '{"n": 1}',
             CASE WHEN i % 5000 = 0 THEN 'DEAD' WHEN i % 10 < 3 THEN 'PENDING' ELSE 'RESOLVED' END,
             timestamptz '2026-01-01' + i * interval '20 seconds', 'topic-' || i % 50 || '.dlq.v1',
             '00000000-0000-4000-8000-000000000000', i % 50, i, '{"n":1}',
             'group-' || i % 5, 'v2:' || lpad(to_hex(i % ${groups}), 32, '0')
      FROM generate_series(${from + 1}::int, ${Math.min(from + step, count)}::int) AS i`);
  await db.query(sql`VACUUM ANALYZE dlq.dlq_messages`);
  await compactCounts(db);
  await db.query(sql`VACUUM ANALYZE dlq.fingerprints, dlq.group_counts, dlq.group_changes`);
}

function fingerprintOf(i: number): string {
  return `v2:${i.toString(16).padStart(32, '0')}`;
}

async function measure(name: string, run: () => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < rounds; i += 1) {
    const begin = performance.now();
    await run();
    times.push(performance.now() - begin);
  }
  times.sort((a, b) => a - b);
  const at = (share: number): string => (times[Math.floor(rounds * share)] ?? 0).toFixed(1).padStart(7);
  process.stdout.write(`  ${name.padEnd(34)} p50 ${at(0.5)} ms   p99 ${at(0.99)} ms\n`);
}

/** Runs every statement, and keeps its plan. */
function explaining(db: Queryable): Readonly<{ db: Queryable; plans: string[] }> {
  const plans: string[] = [];
  return {
    plans,
    db: {
      async query<Row>(statement: Sql) {
        const plan = await db.query<{ 'QUERY PLAN': string }>(sql`EXPLAIN ${statement}`);
        plans.push(plan.map((line) => line['QUERY PLAN']).join('\n'));
        return db.query<Row>(statement);
      },
    },
  };
}
