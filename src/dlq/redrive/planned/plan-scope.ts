import type { Queryable } from '../../../platform/postgres/database.ts';
import { isNamed } from '../../../platform/postgres/is-named.ts';
import { joinSql, sql, type Sql } from '../../../platform/postgres/sql.ts';
import type { LookupHashes, Payloads } from '../../domain/payloads.ts';
import { statusesInScope, type RedriveKind } from '../../domain/redrive-kind.ts';
import { conditionsOf, idsWithText } from '../../message-filter.ts';
import { hasAttempt, hasValue, isIncomplete } from '../../messages-table.ts';
import type { LeasedRedrive, RedriveOptions } from './redrives-table.ts';

/** Which messages a redrive is about. Those that it cannot do anything with are counted as excluded. */
export function inScope(
  { kind, filter, scopes = [] }: Pick<LeasedRedrive, 'kind' | 'filter' | 'scopes'>,
  hashes: LookupHashes | null = null,
): Sql {
  const { topic, fingerprint, key, text, since, until, ids, policy } = filter;
  const conditions = [
    ...conditionsOf({
      status: filter.status ?? statusesInScope(kind, { hasIds: ids !== undefined }),
      ...(topic === undefined ? {} : { topic }),
      ...(fingerprint === undefined ? {} : { fingerprint }),
      ...(filter.error_class === undefined ? {} : { errorClass: filter.error_class }),
      ...(filter.consumer_group === undefined ? {} : { consumerGroup: filter.consumer_group }),
      ...(key === undefined ? {} : { key, hashes }),
    }),
  ];
  if (text !== undefined) conditions.push(sql`t.id IN (${idsWithText(text)})`);
  if (since !== undefined) conditions.push(sql`t.created_at >= ${since}::timestamptz`);
  if (until !== undefined) conditions.push(sql`t.created_at < ${until}::timestamptz`);
  if (ids !== undefined) conditions.push(sql`t.id = ANY(${ids}::uuid[])`);
  if (policy !== undefined)
    conditions.push(sql`t.retry_policy = ${policy} AND t.next_attempt_at IS NOT NULL
      AND (t.next_attempt_at, t.id) <= (${filter.due_until ?? '-infinity'}::timestamptz, ${filter.due_until_id ?? null}::uuid)`);
  return joinSql([...conditions, isOneOf(scopes)], sql` AND `);
}

/** The original topic is one that the planner may select. */
function isOneOf(scopes: LeasedRedrive['scopes'] = []): Sql {
  return joinSql([sql`true`, ...scopes.map((names) => isNamed(sql`t.original_topic`, names))], sql` AND `);
}

/** What finds encrypted messages with the key of the filter. */
export async function hashesFor(
  { payloads }: Readonly<{ payloads: Payloads }>,
  { filter }: Pick<LeasedRedrive, 'filter'>,
): Promise<LookupHashes | null> {
  return filter.key === undefined ? null : payloads.hashes();
}

/** Their status allows it. Another redrive may have them, or their target may be unusable. */
export function isSelectable({
  kind,
  options,
}: Readonly<{ kind: RedriveKind; options: RedriveOptions }>): Sql {
  switch (kind) {
    case 'retry':
      return isRetryable(options);
    case 'reopen':
      return sql`(t.status IN ('DEAD', 'RESOLVED') OR (t.status = 'PENDING' AND NOT ${hasAttempt}))`;
    case 'dead':
      return sql`(t.status = 'PENDING')`;
    case 'delete':
      return sql`(t.status <> 'RETRYING')`;
  }
}

function isRetryable({ reopen = false }: RedriveOptions): Sql {
  return reopen
    ? sql`(t.status IN ('PENDING', 'DEAD') AND t.max_retries > 0)`
    : sql`(t.status = 'PENDING' AND ${hasAttempt})`;
}

/** What decides where messages go. */
export type Origin = Readonly<{ originalTopic: string; sourceTopic: string | null; isUnroutable: boolean }>;

export const originColumns: Sql = sql`
  t.original_topic AS "originalTopic", t.source_topic AS "sourceTopic", t.unroutable AS "isUnroutable"`;

/** A message as the plan reads it: without its bytes. */
export type PlanRow = Origin &
  Readonly<{
    id: string;
    epoch: bigint;
    keyHash: Buffer | null;
    consumerGroup: string | null;
    fingerprint: string | null;
    isRouted: boolean;
    hasValue: boolean;
    /** Parts of it were removed at ingest. */
    isIncomplete: boolean;
    hasAttempt: boolean;
    isSelectable: boolean;
    status: string;
    /** The other redrive that has it. */
    elsewhere: string | null;
  }>;

/** In the order of the original topics, where it is known, so that a key keeps its order. */
export function planRows(
  redrive: Pick<LeasedRedrive, 'id' | 'kind' | 'filter' | 'options' | 'scopes'>,
  hashes: LookupHashes | null,
): Sql {
  return sql`
    SELECT t.id, t.lease_epoch AS epoch, COALESCE(t.key_hmac, sha256(t.message_key)) AS "keyHash", t.consumer_group AS "consumerGroup",
           t.fingerprint, t.routed AS "isRouted", ${hasValue} AS "hasValue", ${isIncomplete} AS "isIncomplete",
           (${hasAttempt}) AS "hasAttempt", ${isSelectable(redrive)} AS "isSelectable", t.status,
           ${otherRedrive(redrive.id)} AS elsewhere, ${originColumns}
    FROM dlq.dlq_messages t
    WHERE ${inScope(redrive, hashes)}
    ORDER BY t.original_topic, t.original_partition, t.original_offset, t.created_at, t.id`;
}

/** One that was started and has not ended, in which the message waits or is in flight. */
function otherRedrive(redriveId: string): Sql {
  return sql`(
    SELECT o.redrive_id FROM dlq.redrive_items o JOIN dlq.redrives r ON r.id = o.redrive_id
    WHERE o.message_id = t.id AND o.redrive_id <> ${redriveId} AND o.outcome IS NULL
      AND r.state IN ('running', 'paused', 'stopped')
    LIMIT 1)`;
}

/** Ids of the filter that are not among the live messages that the planner may select. */
export async function findMissingIds(
  db: Queryable,
  { filter: { ids }, scopes }: Pick<LeasedRedrive, 'filter' | 'scopes'>,
): Promise<readonly Readonly<{ id: string; isArchived: boolean }>[]> {
  if (ids === undefined) return [];
  return db.query(sql`
    SELECT asked.id, EXISTS (SELECT 1 FROM dlq.dlq_messages_archive t WHERE t.id = asked.id AND ${isOneOf(scopes)}) AS "isArchived"
    FROM unnest(${ids}::uuid[]) AS asked (id)
    WHERE NOT EXISTS (SELECT 1 FROM dlq.dlq_messages t WHERE t.id = asked.id AND ${isOneOf(scopes)})`);
}
