import type { Service } from '../../kernel/service.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { batchTask, type Batch, type RetentionTask } from '../../platform/work/retention-tasks.ts';
import { createRetention, every, type RetentionLog } from '../../platform/work/retention.ts';
import type { Worker } from '../../platform/work/work.ts';

export type SagaRetentionOptions = Readonly<{
  /** How long a saga stays after its end. */
  retentionMs: number;
  /** How long it stays in the archive. */
  archiveRetentionMs: number;
  /** Which of these sagas have events that are not delivered yet. */
  unsentEvents: (tx: Queryable, sagaIds: readonly string[]) => Promise<ReadonlySet<string>>;
  batchSize?: number;
}>;

export function createSagaRetention(
  worker: Worker,
  { db, log, options }: Readonly<{ db: Database; log: RetentionLog; options: SagaRetentionOptions }>,
): Service {
  return createRetention(worker, {
    name: 'saga.retention',
    rounds: [
      {
        schedule: every(600_000),
        tasks: sagaRetention(db, options),
        pausePerRound: 10,
        done: 'archived ended sagas and purged expired ones',
      },
    ],
    log,
  });
}

/** Workflow definitions stay: they are few, and the archive refers to them. */
export function sagaRetention(db: Database, options: SagaRetentionOptions): readonly RetentionTask[] {
  // Rows may be large, and a batch is one transaction.
  const limit = options.batchSize ?? 200;
  return [
    batchTask<Cursor>('ended sagas', (after) => archiveBatch(db, options, { after, limit })),
    batchTask<Cursor>('archived sagas', (after) => purgeBatch(db, options, { after, limit })),
    batchTask<Cursor>('expired start keys', (after) => deleteStartKeys(db, { after, limit })),
  ];
}

/** A time in PostgreSQL's text form, and the key of the last row with that time. */
type Cursor = Readonly<{ at: string; ids: readonly string[] }>;
type BatchRange = Readonly<{ after: Cursor | null; limit: number }>;

/** For a table that was just filled, statistics are outdated: the planner would read and sort all of it for every batch. */
async function inIndexOrder<Row extends object>(db: Database, query: Sql): Promise<readonly Row[]> {
  return db.transaction(async (tx) => {
    await tx.query(sql`
      SELECT set_config(name, 'off', true)
      FROM unnest('{enable_seqscan,enable_bitmapscan,enable_sort}'::text[]) AS name`);
    return tx.query<Row>(query);
  });
}

const interval = (ms: number): Sql => sql`(${ms}::float8 * interval '1 millisecond')`;

type SeenRow = Readonly<{ id: string; at: string; is_expired: boolean }>;

const cursorAfter = (rows: readonly SeenRow[], limit: number): Cursor | null => {
  const last = rows.at(-1);
  return last === undefined || rows.length < limit ? null : { at: last.at, ids: [last.id] };
};

/**
 * Reads by creation time: a saga that ended before a time was created before it, so no index on the end is needed,
 * which every settle would have to maintain. An ended saga never changes, so `updated_at` is the time of its end.
 */
async function archiveBatch(
  db: Database,
  { retentionMs, unsentEvents }: SagaRetentionOptions,
  { after, limit }: BatchRange,
): Promise<Batch<Cursor>> {
  const cutoff = sql`now() - ${interval(retentionMs)}`;
  const seen = await inIndexOrder<SeenRow>(
    db,
    sql`
    SELECT s.id, s.created_at::text AS at,
           s.status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND s.updated_at < ${cutoff} AS is_expired
    FROM saga.saga_states s
    WHERE s.created_at < ${cutoff} AND s.created_at >= ${after?.at ?? '-infinity'}::timestamptz
      AND (s.created_at, s.id) > (${after?.at ?? '-infinity'}::timestamptz, ${after?.ids[0] ?? firstId}::uuid)
    ORDER BY s.created_at, s.id
    LIMIT ${limit}`,
  );
  const expired = seen.filter((row) => row.is_expired).map(({ id }) => id);
  const archived =
    expired.length === 0 ? 0 : await db.transaction((tx) => archive(tx, expired, unsentEvents));
  return { counts: { archived }, next: cursorAfter(seen, limit) };
}

const firstId = '00000000-0000-0000-0000-000000000000';

/**
 * A saga's events are added in the transactions that change it: a snapshot with its end has all of them. The copies and
 * the DELETE are separate statements, because a trigger refuses to delete what is not in the archive.
 */
async function archive(
  tx: Queryable,
  expired: readonly string[],
  unsentEvents: SagaRetentionOptions['unsentEvents'],
): Promise<number> {
  const locked = await tx.query<{ id: string }>(sql`
    SELECT s.id
    FROM ${unnestRows(sql`expired`, expired, [[sql`id`, sql`uuid[]`, (id) => id]])}
    JOIN saga.saga_states s ON s.id = expired.id
    WHERE s.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
    ORDER BY s.id
    FOR UPDATE OF s SKIP LOCKED`);
  const ended = locked.map(({ id }) => id);
  const unsent = await unsentEvents(tx, ended);
  const moved = ended.filter((id) => !unsent.has(id));
  if (moved.length === 0) return 0;
  await tx.query(sql`
    INSERT INTO saga.saga_states_archive (${stateColumns})
    SELECT ${stateColumns} FROM saga.saga_states WHERE id = ANY(${moved}::uuid[]) ORDER BY created_at, id`);
  await tx.query(sql`
    INSERT INTO saga.saga_step_logs_archive (${logColumns})
    SELECT ${logColumns} FROM saga.saga_step_logs
    WHERE saga_id = ANY(${moved}::uuid[])
    ORDER BY saga_id, started_at, step_index, attempt`);
  await tx.query(sql`DELETE FROM saga.saga_states WHERE id = ANY(${moved}::uuid[])`);
  return moved.length;
}

const stateColumns: Sql = sql`
  id, workflow_name, current_step, status, payload, correlation_id, initiated_by, error_message, created_at, updated_at,
  definition_hash, step_outputs, wake_at, deadline_at, deadline_over, polls, failed_polls, abort_requested, abort_actor,
  abort_reason, abort_at, pivot_opened, compensation, needs_attention, stuck_step, stuck_op, stuck_reason, trace,
  lease_owner, lease_until, lease_epoch, lease_lost, failed_rounds, runs_alone, waiting_for, waiting_since,
  fingerprint, created_by`;

const logColumns: Sql = sql`
  id, saga_id, step_index, step_name, action, status, request_payload, response_payload, error_message, started_at,
  completed_at, updated_at, attempt, answer, is_unsent, is_last, actor, reason, is_down, spent_ms, fingerprint`;

/** A saga that was archived before a time was created before it. */
async function purgeBatch(
  db: Database,
  { archiveRetentionMs }: SagaRetentionOptions,
  { after, limit }: BatchRange,
): Promise<Batch<Cursor>> {
  const cutoff = sql`now() - ${interval(archiveRetentionMs)}`;
  const seen = await inIndexOrder<SeenRow>(
    db,
    sql`
    SELECT a.id, a.created_at::text AS at, a.archived_at < ${cutoff} AS is_expired
    FROM saga.saga_states_archive a
    WHERE a.created_at < ${cutoff} AND a.created_at >= ${after?.at ?? '-infinity'}::timestamptz
      AND (a.created_at, a.id) > (${after?.at ?? '-infinity'}::timestamptz, ${after?.ids[0] ?? firstId}::uuid)
    ORDER BY a.created_at, a.id
    LIMIT ${limit}`,
  );
  const expired = seen.filter((row) => row.is_expired).map(({ id }) => id);
  const purged =
    expired.length === 0
      ? []
      : await db.query(sql`
          WITH logs AS (DELETE FROM saga.saga_step_logs_archive WHERE saga_id = ANY(${expired}::uuid[]))
          DELETE FROM saga.saga_states_archive WHERE id = ANY(${expired}::uuid[]) RETURNING 1`);
  return { counts: { purged: purged.length }, next: cursorAfter(seen, limit) };
}

type KeyRow = Readonly<{ at: string; workflow_name: string; key: string; is_expired: boolean }>;

/** A key stays at least until its saga is archived, so that a repeated start finds the saga. */
async function deleteStartKeys(db: Database, { after, limit }: BatchRange): Promise<Batch<Cursor>> {
  const [name, key] = after?.ids ?? ['', ''];
  const from = after?.at ?? '-infinity';
  const seen = await inIndexOrder<KeyRow>(
    db,
    sql`
    SELECT k.expires_at::text AS at, k.workflow_name, k.key,
           NOT EXISTS (SELECT 1 FROM saga.saga_states s WHERE s.id = k.saga_id) AS is_expired
    FROM saga.saga_start_keys k
    WHERE k.expires_at < now() AND k.expires_at >= ${from}::timestamptz
      AND (k.expires_at, k.workflow_name, k.key) > (${from}::timestamptz, ${name}, ${key})
    ORDER BY k.expires_at, k.workflow_name, k.key
    LIMIT ${limit}`,
  );
  const expired = seen.filter((row) => row.is_expired);
  const deleted =
    expired.length === 0
      ? []
      : await db.query(sql`
          DELETE FROM saga.saga_start_keys k
          USING unnest(${expired.map((row) => row.workflow_name)}::text[], ${expired.map((row) => row.key)}::text[])
                  AS expired (workflow_name, key)
          WHERE k.workflow_name = expired.workflow_name AND k.key = expired.key AND k.expires_at < now()
          RETURNING 1`);
  const last = seen.at(-1);
  const isEnd = last === undefined || seen.length < limit;
  return {
    counts: { startKeys: deleted.length },
    next: isEnd ? null : { at: last.at, ids: [last.workflow_name, last.key] },
  };
}
