import type { NameFilter } from '../../kernel/access/scope.ts';
import { AppError } from '../../kernel/errors.ts';
import { fingerprintVersion } from '../../kernel/fingerprint/fingerprint.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import { invalidField } from '../../platform/http/slice-input.ts';
import { statuses, type Status } from '../domain/message.ts';
import { clearPayloads, type Payloads } from '../domain/payloads.ts';
import { selectGroups, type Group } from './list-groups.ts';

export type GroupDetails = Readonly<{
  group: Group;
  /** Of the newest messages; a key is null where the record has none. */
  topKeys: readonly Readonly<{
    key: Buffer | null;
    count: number;
    /** Why an encrypted key is not shown. */
    unreadable?: string;
  }>[];
  byTopic: readonly Readonly<{
    topic: string;
    consumerGroup: string | null;
    counts: Readonly<Record<Status, number>>;
  }>[];
}>;

/** The group of a fingerprint or of a prefix that no other fingerprint has. */
export async function findGroup(
  db: Queryable,
  text: string,
  { names = null, payloads = clearPayloads }: Readonly<{ names?: NameFilter; payloads?: Payloads }> = {},
): Promise<GroupDetails> {
  const fingerprint = await wholeFingerprint(db, text, names);
  const [group] = await selectGroups(db, { fingerprint, names }, { after: null, offset: 0, pageSize: 1 });
  if (group === undefined) throw groupNotFound(text);
  const [topKeys, byTopic] = await Promise.all([
    listTopKeys(db, fingerprint, { names, payloads }),
    countByTopic(db, fingerprint, names),
  ]);
  return { group, topKeys, byTopic };
}

function groupNotFound(fingerprint: string): AppError {
  return new AppError('SYS_DLQ_NOT_FOUND', 'not_found', `dlq group not found: ${fingerprint.slice(0, 100)}`);
}

const namedCandidates = 5;

/** Without a version the prefix is one of the current version. */
async function wholeFingerprint(db: Queryable, text: string, names: NameFilter): Promise<string> {
  const [exact] = await db.query(sql`SELECT 1 FROM dlq.fingerprints WHERE fingerprint = ${text}`);
  if (exact !== undefined) return text;
  const prefix = /^[\da-f]/.test(text) ? `v${fingerprintVersion}:${text}` : text;
  if (!/^v\d{1,6}:[\da-f]{4,32}$/.test(prefix)) throw groupNotFound(text);
  const found = await db.query<{ fingerprint: string }>(sql`
    SELECT f.fingerprint FROM dlq.fingerprints f
    WHERE f.fingerprint ~>=~ ${prefix} AND f.fingerprint ~<~ ${`${prefix}g`}
      AND ${names === null ? sql`true` : hasMessages(names)}
    ORDER BY f.fingerprint USING ~<~
    LIMIT ${namedCandidates}`);
  const [first, ...others] = found;
  if (first === undefined) throw groupNotFound(text);
  if (others.length > 0)
    throw invalidField(
      'dlq',
      'fingerprint',
      'ambiguous',
      `is the beginning of several: ${found.map((one) => one.fingerprint).join(', ')}`,
    );
  return first.fingerprint;
}

/** A group that the caller may not see must not make a prefix ambiguous. */
function hasMessages(names: NameFilter): Sql {
  return sql`f.fingerprint IN (
    SELECT g.fingerprint FROM dlq.group_figures g WHERE ${isNamed(sql`g.original_topic`, names)}
    GROUP BY g.fingerprint HAVING sum(g.messages) > 0)`;
}

const readForKeys = 10_000;
const listedKeys = 10;
const listedKeyBytes = 1024;

/** The keys with the most messages among the newest messages, which the index has found before any is read. */
async function listTopKeys(
  db: Queryable,
  fingerprint: string,
  { names, payloads }: Readonly<{ names: NameFilter; payloads: Payloads }>,
): Promise<GroupDetails['topKeys']> {
  const newest = statuses.map(
    (status) => sql`(
      SELECT t.created_at, t.id FROM dlq.dlq_messages t
      WHERE t.fingerprint = ${fingerprint} AND t.status = ${status} AND ${isNamed(sql`t.original_topic`, names)}
      ORDER BY t.created_at DESC, t.id DESC LIMIT ${readForKeys})`,
  );
  const rows = await db.query<TopKeyRow>(sql`
    WITH newest AS MATERIALIZED (
      SELECT id FROM (${joinSql(newest, sql` UNION ALL `)}) AS ranges
      ORDER BY created_at DESC, id DESC LIMIT ${readForKeys}
    )
    SELECT m.key, m.is_sealed, count(*)::int AS count, (array_agg(newest.id))[1] AS id
    FROM newest CROSS JOIN LATERAL (
      SELECT COALESCE(t.key_hmac, substring(t.message_key FOR ${listedKeyBytes})) AS key,
             t.key_hmac IS NOT NULL AS is_sealed
      FROM dlq.dlq_messages t
      WHERE t.id = newest.id OFFSET 0
    ) AS m
    GROUP BY m.key, m.is_sealed
    ORDER BY count(*) DESC, m.key
    LIMIT ${listedKeys}`);
  return openTopKeys(db, rows, payloads);
}

type TopKeyRow = Readonly<{ key: Buffer | null; is_sealed: boolean; count: number; id: string }>;

/** Encrypted keys were grouped by their hashes: one message of each tells the key. */
async function openTopKeys(
  db: Queryable,
  rows: readonly TopKeyRow[],
  payloads: Payloads,
): Promise<GroupDetails['topKeys']> {
  const ids = rows.flatMap(({ is_sealed, id }) => (is_sealed ? [id] : []));
  if (ids.length === 0) return rows.map(({ key, count }) => ({ key, count }));
  const stored = await db.query<{ id: string; key: Buffer }>(sql`
    SELECT t.id, t.message_key AS key FROM dlq.dlq_messages t WHERE t.id = ANY(${ids}::uuid[])`);
  const opened = await payloads.open(stored.map(({ id, key }) => ({ id, isSealed: true, parts: { key } })));
  const keys = new Map(stored.map(({ id }, i) => [id, opened[i]]));
  return rows.map(({ is_sealed, key, count, id }) => {
    if (!is_sealed) return { key, count };
    const one = keys.get(id);
    return one === undefined || one.error !== null
      ? { key: null, count, unreadable: one?.error?.code ?? 'SYS_DLQ_CANNOT_DECRYPT' }
      : { key: one.parts.key.subarray(0, listedKeyBytes), count };
  });
}

const listedTopics = 1000;

async function countByTopic(
  db: Queryable,
  fingerprint: string,
  names: NameFilter,
): Promise<GroupDetails['byTopic']> {
  const rows = await db.query<Record<Status, bigint> & { topic: string; consumer_group: string }>(sql`
    SELECT original_topic AS topic, consumer_group,
           COALESCE(sum(messages) FILTER (WHERE status = 'PENDING'), 0)::bigint AS "PENDING",
           COALESCE(sum(messages) FILTER (WHERE status = 'RETRYING'), 0)::bigint AS "RETRYING",
           COALESCE(sum(messages) FILTER (WHERE status = 'RESOLVED'), 0)::bigint AS "RESOLVED",
           COALESCE(sum(messages) FILTER (WHERE status = 'DEAD'), 0)::bigint AS "DEAD"
    FROM dlq.group_figures
    WHERE fingerprint = ${fingerprint} AND ${isNamed(sql`original_topic`, names)}
    GROUP BY original_topic, consumer_group
    HAVING sum(messages) > 0
    ORDER BY sum(messages) DESC, original_topic, consumer_group
    LIMIT ${listedTopics}`);
  return rows.map((row) => ({
    topic: row.topic,
    consumerGroup: row.consumer_group === '' ? null : row.consumer_group,
    counts: {
      PENDING: Number(row.PENDING),
      RETRYING: Number(row.RETRYING),
      RESOLVED: Number(row.RESOLVED),
      DEAD: Number(row.DEAD),
    },
  }));
}
