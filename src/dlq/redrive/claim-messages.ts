import type { Compression } from '../../kernel/broker-record.ts';
import type { Lease } from '../../kernel/lease.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { claim, type Worker } from '../../platform/work/work.ts';
import type { StoredItem } from '../domain/payloads.ts';
import { exactInstant } from '../instant.ts';
import { hasValue, isDue, isIncomplete, messages, recordValue, unscheduled } from '../messages-table.ts';
import type { StoredHeader } from '../stored-headers.ts';
import type { Keyset } from '../stored-message.ts';

/** A message whose attempt has started: what to publish, and where. */
export type ClaimedMessage = Readonly<{
  id: string;
  targetTopic: string;
  /** An operator chose the target: it need not be an allowed one. */
  isRouted: boolean;
  /** False if there is nothing to publish. */
  hasValue: boolean;
  /** The size of its body in memory. */
  bytes: number;
  /** As it is stored. Null if it is too large to be returned by the claim: a thousand of those would not fit into memory. */
  body: StoredBody | null;
  dialect: string | null;
  /** Equal for messages with equal keys; null without a key. */
  orderKey: Buffer | null;
  /** Messages are sent in this order. */
  place: Keyset;
  /** The codec of its batch on the dead-letter topic; null if unknown. */
  compression: Compression | null;
  attemptNo: number;
  /** 0 for the original record. */
  version: number;
  /** When the attempt was claimed, by the database's clock. */
  claimedAtMs: bigint;
  originalTimestampMs: bigint | null;
}>;

/** The bytes that a retry publishes, encrypted or not. */
export type StoredBody = StoredItem<
  Readonly<{ key: Buffer | null; value: Buffer | null; headers: readonly StoredHeader[] | null }>
>;

export type ClaimedBatch = Readonly<{ lease: Lease; messages: readonly ClaimedMessage[] }>;

export type ClaimDeps = Readonly<{ worker: Worker; leaseMs: number }>;

/** Where messages go by today's rules if their stored topic is no target; null leaves them unclaimed. */
export type Reroute = Readonly<{
  /** Messages marked unroutable on arrival. */
  unroutable: string | null;
  /** Messages whose original topic is itself a dead-letter topic, as the predecessor stored them. */
  misnamed: string | null;
}>;

/** A target for each message, in SQL, or one for all that need it. */
export type ClaimTarget = Reroute | Readonly<Record<keyof Reroute, Sql>>;

/** `detail`: of the entries in the history. */
export type Claiming = Readonly<{
  actor: string;
  limit: number;
  reroute: ClaimTarget;
  detail?: string | null;
  /** Further CTEs over `claimed`, each with a leading comma. */
  also?: Sql;
}>;

/**
 * Starts attempts: the claimed rows become RETRYING, count the attempt, and note the hash of what will be published,
 * so that it is recognised if it comes back as a dead letter.
 */
export async function claimMessages(
  { worker, leaseMs }: ClaimDeps,
  where: Sql,
  { actor, limit, reroute, detail = null, also = sql`` }: Claiming,
): Promise<ClaimedBatch> {
  const hasRoute = reroute.unroutable === null ? sql`NOT t.unroutable` : sql`true`;
  const { lease, rows } = await claim<ClaimedRow>(worker, messages, {
    where: sql`${where} AND ${isDue} AND NOT ${isIncomplete} AND ${hasRoute}`,
    orderBy: sql`t.created_at, t.id`,
    limit,
    leaseMs,
    set: sql`
      status = 'RETRYING', retry_count = t.retry_count + 1, attempt_no = t.attempt_no + 1,
      last_retry_at = clock_timestamp(), resolution = NULL, published_sha256 = ${publishedSha256},
      unroutable = false, ${unscheduled},
      original_topic = COALESCE(
        CASE WHEN t.unroutable THEN ${reroute.unroutable} ELSE ${reroute.misnamed} END, t.original_topic)`,
    returning: claimedColumns,
    also: sql`, noted AS (
      INSERT INTO dlq.message_history
        (message_id, event, actor, status_from, status_to, retry_count, attempt_no, lease_epoch, target_topic,
         published_sha256, version, detail, original_topic)
      SELECT id, 'retry_started', ${actor}, 'PENDING', 'RETRYING', retry_count, attempt_no, claim_epoch,
             original_topic, published_sha256, NULLIF(version, 0), ${detail}, original_topic
      FROM claimed
    )${also}`,
    rowOrder: sql`created_at_order, id`,
  });
  return { lease, messages: rows.map(claimedOf) };
}

/** A message that has lost its worker and has one attempt left runs alone; see the solo gate. */
export const mustRunAlone: Sql = sql`(t.lease_lost AND t.retry_count + 1 >= t.max_retries)`;

/** The same hash as `recordSha256` in the domain; of an encrypted message its keyed hash. */
const publishedSha256: Sql = sql`CASE WHEN t.data_key IS NOT NULL THEN t.record_hmac ELSE sha256(
    int4send(COALESCE(length(t.message_key), -1)) || COALESCE(t.message_key, '') ||
    int4send(COALESCE(length(${recordValue}), -1)) || COALESCE(${recordValue}, '')) END`;

const maxOrderKeyBytes = 256;

export const orderKey: Sql = sql`
  CASE WHEN t.data_key IS NOT NULL THEN t.key_hmac
       WHEN length(t.message_key) <= ${maxOrderKeyBytes} THEN t.message_key ELSE sha256(t.message_key) END`;

/** The claim returns bodies up to this size, so that a batch of a thousand messages stays small. */
const inlineBytes = 16_384;

const bytes: Sql = sql`(
  COALESCE(length(t.message_key), 0) + COALESCE(length(${recordValue}), 0) + COALESCE(pg_column_size(t.headers), 0))`;

const isSmall: Sql = sql`${bytes} <= ${inlineBytes}`;

type BodyRow = StoredBody['parts'] & Readonly<{ id: string; is_sealed: boolean }>;

type ClaimedRow = BodyRow & {
  original_topic: string;
  has_value: boolean;
  routed: boolean;
  bytes: number;
  dialect: string | null;
  attempt_no: number;
  version: number;
  original_ms: bigint | null;
  created_at_exact: string;
  order_key: Buffer | null;
  compression: Compression | null;
  claimed_ms: bigint;
};

const claimedColumns: Sql = sql`
  t.id, t.original_topic, t.routed, t.published_sha256, ${hasValue} AS has_value,
  ${bytes} AS bytes, t.data_key IS NOT NULL AS is_sealed,
  CASE WHEN ${isSmall} THEN t.message_key END AS key, CASE WHEN ${isSmall} THEN ${recordValue} END AS value,
  CASE WHEN ${isSmall} THEN t.headers END AS headers, ${orderKey} AS order_key,
  t.source_compression AS compression, t.dialect, t.attempt_no, t.version, t.retry_count,
  (date_part('epoch', t.last_retry_at) * 1000)::bigint AS claimed_ms,
  ${exactInstant(sql`t.created_at`)} AS created_at_exact, extract(epoch FROM t.created_at) AS created_at_order,
  (date_part('epoch', COALESCE(t.original_timestamp, t.source_timestamp)) * 1000)::bigint AS original_ms`;

function claimedOf(row: ClaimedRow): ClaimedMessage {
  return {
    id: row.id,
    targetTopic: row.original_topic,
    isRouted: row.routed,
    hasValue: row.has_value,
    bytes: row.bytes,
    body: row.bytes <= inlineBytes ? bodyOf(row) : null,
    dialect: row.dialect,
    orderKey: row.order_key,
    place: { createdAt: row.created_at_exact, id: row.id },
    compression: row.compression,
    attemptNo: row.attempt_no,
    version: row.version,
    claimedAtMs: row.claimed_ms,
    originalTimestampMs: row.original_ms,
  };
}

function bodyOf({ id, is_sealed: isSealed, key, value, headers }: BodyRow): StoredBody {
  return { id, isSealed, parts: { key, value, headers } };
}

/** The bodies of claimed messages that are still ours. */
export async function loadBodies(
  { worker }: Pick<ClaimDeps, 'worker'>,
  lease: Lease,
  ids: readonly string[],
): Promise<ReadonlyMap<string, StoredBody>> {
  if (ids.length === 0) return new Map();
  const rows = await worker.db.query<BodyRow>(sql`
    SELECT t.id, t.data_key IS NOT NULL AS is_sealed, t.message_key AS key, ${recordValue} AS value, t.headers
    FROM unnest((SELECT ${ids}::uuid[])) AS keys (key)
    JOIN dlq.dlq_messages t ON t.id = keys.key
    WHERE t.lease_epoch = ${lease.epoch} AND (t.status = 'RETRYING') IS TRUE`);
  return new Map(rows.map((row) => [row.id, bodyOf(row)]));
}

/** Replaces the hashes that the claim noted, for attempts that publish under a new key. */
export async function noteHashes(
  { worker }: Pick<ClaimDeps, 'worker'>,
  lease: Lease,
  sha256ById: ReadonlyMap<string, Buffer>,
): Promise<void> {
  await worker.db.query(sql`
    WITH new AS MATERIALIZED (
      SELECT * FROM unnest(${[...sha256ById.keys()]}::uuid[], ${[...sha256ById.values()]}::bytea[]) AS new (id, sha256)
    ), noted AS (
      UPDATE dlq.message_history h SET published_sha256 = new.sha256 FROM new
      WHERE h.message_id = new.id AND h.event = 'retry_started' AND h.lease_epoch = ${lease.epoch}
    ), watched AS (
      UPDATE dlq.redrive_items i SET sha256 = new.sha256 FROM new
      WHERE i.message_id = new.id AND i.claim_epoch = ${lease.epoch} AND i.sha256 IS NOT NULL
    )
    UPDATE dlq.dlq_messages t SET published_sha256 = new.sha256 FROM new
    WHERE t.id = new.id AND t.lease_epoch = ${lease.epoch} AND t.status = 'RETRYING'`);
}
