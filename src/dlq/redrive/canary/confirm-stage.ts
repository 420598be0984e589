import type { PartitionInfo } from '../../../platform/broker/port.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { readCommitted, type Committed, type GroupBroker } from '../consumer-groups.ts';

export type ConfirmDeps = Readonly<{
  db: Database;
  broker: GroupBroker | null;
  isDeadLetterTopic: (topic: string) => boolean;
}>;

/** The last offset that was published to a partition. */
type Place = Readonly<{ target: string; partition: number; offset: bigint }>;

/** What is found out once per window. */
export type Findings = {
  places?: readonly Place[];
  /** The consumer group that had not committed beyond the places at the last attempt. */
  behind?: string;
  /** All groups had committed beyond the places. */
  isRead?: true;
  ends?: readonly PartitionInfo[];
};

/**
 * Whether silence means success after a window: every consumer group of the targets has committed beyond the published
 * offsets, and after that ingest has passed the ends of all dead-letter partitions. A consumer publishes a dead letter
 * before it commits, so the ends are read in this order. Null if it is confirmed, else what is missing.
 */
export async function confirmStage(
  deps: ConfirmDeps,
  redriveId: string,
  findings: Findings,
  signal: AbortSignal,
): Promise<string | null> {
  const { broker } = deps;
  if (broker === null) return 'no broker is configured';
  findings.places ??= await readPlaces(deps.db, redriveId);
  if (findings.isRead !== true) {
    const missing = await findUnread(
      { ...deps, broker },
      { redriveId, findings, places: findings.places },
      signal,
    );
    if (missing !== null) return missing;
    findings.isRead = true;
  }
  if (findings.ends === undefined) {
    const known = await deps.db.query<{ topic: string }>(sql`
      SELECT DISTINCT p.topic FROM dlq.source_partitions p WHERE NOT p.gone AND p.forgotten IS NULL`);
    const expected = known.map(({ topic }) => topic);
    const listing = await broker.partitions(deps.isDeadLetterTopic, signal, expected);
    const [trouble] = listing.troubles;
    if (trouble !== undefined) return `dead-letter topic ${trouble.topic}: ${trouble.code}`;
    findings.ends = listing.partitions;
  }
  return findNotIngested(deps.db, findings.ends);
}

async function readPlaces(db: Database, redriveId: string): Promise<readonly Place[]> {
  return db.query<Place>(sql`
    SELECT i.target, i.partition, max(i."offset") AS "offset" FROM dlq.redrive_items i
    WHERE i.redrive_id = ${redriveId} AND i.stage IS NOT NULL AND i."offset" IS NOT NULL
    GROUP BY i.target, i.partition ORDER BY i.target, i.partition`);
}

type Question = Readonly<{ redriveId: string; findings: Findings; places: readonly Place[] }>;

/** The first consumer group that has not committed beyond a published offset. */
async function findUnread(
  { db, broker }: Readonly<{ db: Database; broker: GroupBroker }>,
  { redriveId, findings, places }: Question,
  signal: AbortSignal,
): Promise<string | null> {
  const targets = new Set(places.map(({ target }) => target));
  const { partitions } = await broker.partitions((topic) => targets.has(topic), signal, [...targets]);
  const named = await readNamedGroups(db, redriveId);
  const unreadBy = (group: string, offsets: Committed): string | null =>
    places
      .filter(({ target }) => isReader({ named, group, offsets }, target))
      .map((place) => unreadPlace(group, offsets, place))
      .find((missing) => missing !== null) ?? null;

  // Usually it is still the same group, and the others need not be asked.
  if (findings.behind !== undefined) {
    const missing = unreadBy(findings.behind, await broker.committed(findings.behind, partitions, signal));
    if (missing !== null) return missing;
  }
  const committed = await readCommitted(broker, { partitions, named: [...named.keys()] }, signal);
  for (const target of targets)
    if (![...committed].some(([group, offsets]) => isReader({ named, group, offsets }, target)))
      return `no consumer group of ${target} is known`;
  for (const [group, offsets] of committed) {
    const missing = unreadBy(group, offsets);
    if (missing === null) continue;
    findings.behind = group;
    return missing;
  }
  return null;
}

type Group = Readonly<{
  named: ReadonlyMap<string, ReadonlySet<string>>;
  group: string;
  offsets: Committed;
}>;

function isReader({ named, group, offsets }: Group, target: string): boolean {
  return named.get(group)?.has(target) === true || offsets.some(({ topic }) => topic === target);
}

function unreadPlace(group: string, offsets: Committed, { target, partition, offset }: Place): string | null {
  const found = offsets.find((one) => one.topic === target && one.partition === partition);
  if (found === undefined) return `consumer group ${group} has committed no offset of ${target}/${partition}`;
  if (found.offset > offset) return null;
  return `consumer group ${group} is at offset ${found.offset} of ${target}/${partition}, not beyond ${offset}`;
}

/** The targets by the groups that failed on the messages of the plan. */
async function readNamedGroups(
  db: Database,
  redriveId: string,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const rows = await db.query<{ group: string; topics: readonly string[] }>(sql`
    SELECT named.name AS "group", array_agg(DISTINCT t.target->>'topic') AS topics
    FROM dlq.redrives r
    CROSS JOIN LATERAL jsonb_array_elements(r.counts->'targets') AS t (target)
    CROSS JOIN LATERAL jsonb_array_elements_text(COALESCE(t.target->'failed_groups', t.target->'groups')) AS named (name)
    WHERE r.id = ${redriveId}
    GROUP BY named.name`);
  return new Map(rows.map(({ group, topics }) => [group, new Set(topics)]));
}

/** The first dead-letter partition that ingest has not read up to this end. One that is gone has no more to read. */
async function findNotIngested(db: Database, ends: readonly PartitionInfo[]): Promise<string | null> {
  const rows = await db.query<{ key: string; high: bigint; gone: boolean }>(sql`
    SELECT p.topic_id || '/' || p.partition AS key, p.high_offset AS high, p.gone FROM dlq.source_partitions p
    WHERE p.topic_id = ANY(${ends.map(({ topicId }) => topicId)}::uuid[])`);
  const read = new Map(rows.map((row) => [row.key, row]));
  for (const { topic, topicId, partition, start, end } of ends) {
    const position = read.get(`${topicId}/${partition}`);
    if (position === undefined ? start === end : position.gone || position.high >= end) continue;
    return `ingest is at offset ${position?.high ?? 'none'} of ${topic}/${partition}, before ${end}`;
  }
  return null;
}
