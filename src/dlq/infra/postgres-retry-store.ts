import { remainingMs, type Lease } from '../../kernel/lease.ts';
import { persist } from '../../platform/postgres/persist.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { claim, reap, type Worker } from '../../platform/postgres/work.ts';
import type { Status } from '../domain/message.ts';
import type {
  AttemptOutcome,
  ClaimedBatch,
  ClaimedMessage,
  ClaimManyOptions,
  ClaimOneOptions,
  Keyset,
  MessageBody,
  Reroute,
  RetryStore,
} from '../usecase/ports.ts';
import { messages, statusAfterFailure, tellOfDead } from './messages-table.ts';
import { readHeaders, type StoredHeader } from './stored-headers.ts';
import { settleAttempts } from './postgres-settle.ts';

type BodyRow = { key: Buffer | null; value: Buffer | null; headers: readonly StoredHeader[] | null };

type ClaimedRow = BodyRow & {
  id: string;
  original_topic: string;
  has_value: boolean;
  bytes: number;
  dialect: string | null;
  attempt_no: number;
  original_ms: bigint | null;
  retry_count: number;
  max_retries: number;
  created_at_exact: string;
};

const reapBatch = 500;

export function createPostgresRetryStore(
  worker: Worker,
  options: Readonly<{ leaseMs: number; onSettleRetry: (error: unknown) => void }>,
): RetryStore {
  const claimRows = (
    where: Sql,
    more: Readonly<{ actor: string; limit: number; reroute: Reroute }>,
  ): ReturnType<typeof claim<ClaimedRow>> =>
    claim<ClaimedRow>(worker, messages, {
      where,
      orderBy: sql`t.created_at, t.id`,
      limit: more.limit,
      leaseMs: options.leaseMs,
      set: startAttempt(more.reroute),
      returning: claimedColumns,
      also: noteStart(more.actor),
      rowOrder: sql`created_at_exact, id`,
    });

  return {
    async claimOne(one: ClaimOneOptions) {
      const claimed = await claimRows(
        sql`t.id = ${one.id} AND ${isDue} AND ${mayRun(one.alone)}
            AND ${hasRoute(one.reroute)}`,
        { ...one, limit: 1 },
      );
      return batchOf(claimed.lease, claimed.rows);
    },

    async claimMany(many: ClaimManyOptions) {
      const claimed = await claimRows(dueInTopic(many), many);
      const last = claimed.rows.at(-1);
      const keyset: Keyset | null = last ? { createdAt: last.created_at_exact, id: last.id } : null;
      return { ...batchOf(claimed.lease, claimed.rows), last: keyset };
    },

    async startRetryAll() {
      const rows = await worker.db.query<{ epoch: bigint; at: string }>(sql`
        SELECT nextval('platform.lease_epochs') AS epoch, clock_timestamp()::text AS at`);
      return rows[0] ?? { epoch: 0n, at: '-infinity' };
    },

    async countUnroutable(topic, isDeadLetterTopic) {
      const rows = await worker.db.query<{ count: bigint }>(sql`
        SELECT count(*) AS count FROM dlq.dlq_messages t
        WHERE t.original_topic = ${topic} AND ${isDue} AND (t.unroutable OR ${isDeadLetterTopic})`);
      return Number(rows[0]?.count ?? 0n);
    },

    async loadBodies(lease, ids) {
      const rows = await worker.db.query<BodyRow & { id: string }>(sql`
        SELECT t.id, t.message_key AS key, ${value} AS value, t.headers
        FROM unnest((SELECT ${ids}::uuid[])) AS keys (key)
        JOIN dlq.dlq_messages t ON t.id = keys.key
        WHERE t.lease_epoch = ${lease.epoch} AND (t.status = 'RETRYING') IS TRUE`);
      return new Map(rows.map((row) => [row.id, bodyOf(row)]));
    },

    async noteHashes(lease, sha256ById) {
      const entries = [...sha256ById];
      await worker.db.query(sql`
        UPDATE dlq.dlq_messages t SET published_sha256 = new.sha256
        FROM unnest(${entries.map(([id]) => id)}::uuid[], ${entries.map(([, sha256]) => sha256)}::bytea[])
             AS new (id, sha256)
        WHERE t.id = new.id AND t.lease_epoch = ${lease.epoch} AND t.status = 'RETRYING'`);
    },

    async settle(lease, outcomes, actor) {
      const statuses = new Map<string, Status | null>();
      const store = async (items: readonly (readonly [string, AttemptOutcome])[]): Promise<void> => {
        const settled = await settleAttempts(worker, { lease, outcomes: new Map(items), actor });
        for (const [id, status] of settled.statuses) statuses.set(id, status);
      };
      await persist([...outcomes], {
        store,
        storeCulprit: ([id, outcome]) => store([[id, withoutText(outcome)]]),
        // Until the lease is over nobody else touches the rows, so repeating is safe.
        until: AbortSignal.timeout(Math.max(1, Math.ceil(remainingMs(lease, worker.clock)))),
        onRetry: options.onSettleRetry,
      });
      return { statuses };
    },

    async reap(id) {
      const rows = await reap<{ id: string }>(worker.db, messages, {
        where: id === undefined ? sql`t.status = 'RETRYING'` : sql`t.status = 'RETRYING' AND t.id = ${id}`,
        limit: reapBatch,
        set: sql`status = ${statusAfterFailure}`,
        returning: sql`t.id, t.original_topic, t.status, t.retry_count, t.attempt_no, t.lease_epoch,
                       'the worker was lost while it retried the message' AS detail`,
        also: sql`, noted AS (
          INSERT INTO dlq.message_history
            (message_id, event, actor, status_from, status_to, retry_count, attempt_no, lease_epoch, detail)
          SELECT id, 'lease_expired', 'reaper', 'RETRYING', status, retry_count, attempt_no, lease_epoch, detail
          FROM reaped
        )${tellOfDead(sql`reaped`)}`,
      });
      return rows.length;
    },
  };
}

/** A text from outside that the database refuses never keeps an attempt open. */
function withoutText(outcome: AttemptOutcome): AttemptOutcome {
  switch (outcome.end) {
    case 'failed':
    case 'unknown':
      return { ...outcome, error: 'the error text could not be stored' };
    case 'released':
      return { ...outcome, reason: 'the reason could not be stored' };
    case 'published':
    case 'not_published':
      return outcome;
  }
}

const isDue: Sql = sql`t.status = 'PENDING' AND t.retry_count < t.max_retries`;

/** What has taken its worker down and has one attempt left runs alone; see the solo gate. */
function mayRun(alone: boolean): Sql {
  return sql`(${alone} OR NOT (t.lease_lost AND t.retry_count + 1 >= t.max_retries))`;
}

function dueInTopic(many: ClaimManyOptions): Sql {
  const inTopic =
    many.by === 'original'
      ? sql`t.original_topic = ${many.topic}`
      : sql`t.source_topic = ${many.topic} AND t.original_topic <> ${many.topic}`;
  const after =
    many.after === null
      ? sql`true`
      : sql`(t.created_at, t.id) > (${many.after.createdAt}::timestamptz, ${many.after.id}::uuid)`;
  const runsNow = many.alone ? sql`t.lease_lost AND t.retry_count + 1 >= t.max_retries` : mayRun(false);
  return sql`${inTopic} AND ${isDue} AND ${runsNow} AND ${after}
    AND t.lease_epoch < ${many.since.epoch} AND t.created_at <= ${many.since.at}::timestamptz
    AND ${many.onlyUnroutable ? sql`t.unroutable` : sql`true`} AND ${hasRoute(many.reroute)}`;
}

/** The value that is published: the raw bytes, or the payload's text where a row was inserted without them. */
const value: Sql = sql`
  CASE WHEN t.source_topic IS NULL THEN convert_to(t.payload::text, 'UTF8') ELSE t.raw_value END`;

/** Bodies up to this size come with the claim, so that a batch of a thousand stays small. */
const inlineBytes = 16_384;

const bytes: Sql = sql`(
  COALESCE(length(t.message_key), 0) + COALESCE(length(${value}), 0) + COALESCE(pg_column_size(t.headers), 0))`;

const isSmall: Sql = sql`${bytes} <= ${inlineBytes}`;

/** The same as recordSha256 in the domain. Written before the send, so that what comes back is recognised. */
const publishedSha256: Sql = sql`sha256(
    int4send(COALESCE(length(t.message_key), -1)) || COALESCE(t.message_key, '') ||
    int4send(COALESCE(length(${value}), -1)) || COALESCE(${value}, ''))`;

function hasRoute(reroute: Reroute): Sql {
  return reroute.unroutable === null ? sql`NOT t.unroutable` : sql`true`;
}

function startAttempt(reroute: Reroute): Sql {
  return sql`
    status = 'RETRYING', retry_count = t.retry_count + 1, attempt_no = t.attempt_no + 1,
    last_retry_at = clock_timestamp(), resolution = NULL, published_sha256 = ${publishedSha256},
    unroutable = false,
    original_topic = COALESCE(
      CASE WHEN t.unroutable THEN ${reroute.unroutable} ELSE ${reroute.misnamed} END, t.original_topic)`;
}

const claimedColumns: Sql = sql`
  t.id, t.original_topic, t.source_topic IS NOT NULL OR t.payload IS NOT NULL AS has_value, ${bytes} AS bytes,
  CASE WHEN ${isSmall} THEN t.message_key END AS key, CASE WHEN ${isSmall} THEN ${value} END AS value,
  CASE WHEN ${isSmall} THEN t.headers END AS headers, t.dialect, t.attempt_no, t.retry_count,
  t.max_retries, to_char(t.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at_exact,
  (date_part('epoch', COALESCE(t.original_timestamp, t.source_timestamp)) * 1000)::bigint AS original_ms`;

function noteStart(actor: string): Sql {
  return sql`, noted AS (
    INSERT INTO dlq.message_history
      (message_id, event, actor, status_from, status_to, retry_count, attempt_no, lease_epoch)
    SELECT id, 'retry_started', ${actor}, 'PENDING', 'RETRYING', retry_count, attempt_no, claim_epoch
    FROM claimed
  )`;
}

function batchOf(lease: Lease, rows: readonly ClaimedRow[]): ClaimedBatch {
  return { lease, messages: rows.map(messageOf) };
}

function bodyOf({ key, value, headers }: BodyRow): MessageBody {
  return { key, value, headers: readHeaders(headers) };
}

function messageOf(row: ClaimedRow): ClaimedMessage {
  return {
    id: row.id,
    targetTopic: row.original_topic,
    hasValue: row.has_value,
    bytes: row.bytes,
    body: row.bytes <= inlineBytes ? bodyOf(row) : null,
    dialect: row.dialect,
    attemptNo: row.attempt_no,
    originalTimestampMs: row.original_ms,
    retryCount: row.retry_count,
    maxRetries: row.max_retries,
  };
}
