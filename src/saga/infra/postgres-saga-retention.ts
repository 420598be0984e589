import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';

export type SagaRetentionOptions = Readonly<{
  /** How long a saga stays after its end. */
  retentionMs: number;
  /** How long it stays in the archive. */
  archiveRetentionMs: number;
  /** Of these sagas, those that have events which nobody was told yet. */
  unsentEvents: (tx: Queryable, sagaIds: readonly string[]) => Promise<ReadonlySet<string>>;
  batchSize?: number;
}>;

export type RemovedSagas = Readonly<{
  archived: number;
  /** Archived sagas whose keep is over. */
  forgotten: number;
  startKeys: number;
}>;

/** Keeps the tables of the slice small. Definitions stay: they are few, and the archive refers to them. */
export type SagaRetention = Readonly<{
  /** One walk through what is old enough, batch by batch, until the signal aborts. */
  remove(signal: AbortSignal): Promise<RemovedSagas>;
}>;

export function createPostgresSagaRetention(db: Database, options: SagaRetentionOptions): SagaRetention {
  // Rows may be large, and a batch is one transaction.
  const limit = options.batchSize ?? 200;
  return {
    async remove(signal) {
      const archived = await walk(signal, (after) => archiveBatch(db, options, { after, limit }));
      const forgotten = await walk(signal, (after) => forgetBatch(db, options, { after, limit }));
      const startKeys = await walk(signal, (after) => removeStartKeys(db, { after, limit }));
      return { archived, forgotten, startKeys };
    },
  };
}

/** Where a walk has come to: a time as the database writes it, with what tells rows of one time apart. */
type Place = Readonly<{ at: string; ids: readonly string[] }>;
type Batch = Readonly<{ after: Place | null; limit: number }>;
type Walked = Readonly<{ removed: number; last: Place | null }>;

/** Rows that stay are read once per walk, and stand in nobody's way. */
async function walk(signal: AbortSignal, step: (after: Place | null) => Promise<Walked>): Promise<number> {
  let removed = 0;
  for (let after: Place | null = null; !signal.aborted;) {
    const walked = await step(after);
    removed += walked.removed;
    if (walked.last === null) break;
    after = walked.last;
  }
  return removed;
}

/** What has just been filled is small by the statistics, and would be read and sorted as a whole for every batch. */
async function inIndexOrder<Row extends object>(db: Database, query: Sql): Promise<readonly Row[]> {
  return db.transaction(async (tx) => {
    await tx.query(sql`
      SELECT set_config(name, 'off', true)
      FROM unnest('{enable_seqscan,enable_bitmapscan,enable_sort}'::text[]) AS name`);
    return tx.query<Row>(query);
  });
}

const interval = (ms: number): Sql => sql`(${ms}::float8 * interval '1 millisecond')`;

type SeenRow = Readonly<{ id: string; at: string; is_over: boolean }>;

const placeOf = (rows: readonly SeenRow[], limit: number): Place | null => {
  const last = rows.at(-1);
  return last === undefined || rows.length < limit ? null : { at: last.at, ids: [last.id] };
};

/**
 * Walks by the time of the start: what ended before a time was started before it, so no index on the end is needed,
 * which every settle would pay for. A saga that has ended is changed by nobody, so the time of its last change is that
 * of its end.
 */
async function archiveBatch(
  db: Database,
  { retentionMs, unsentEvents }: SagaRetentionOptions,
  { after, limit }: Batch,
): Promise<Walked> {
  const cutoff = sql`now() - ${interval(retentionMs)}`;
  const seen = await inIndexOrder<SeenRow>(
    db,
    sql`
    SELECT s.id, s.created_at::text AS at,
           s.status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND s.updated_at < ${cutoff} AS is_over
    FROM saga.saga_states s
    WHERE s.created_at < ${cutoff} AND s.created_at >= ${after?.at ?? '-infinity'}::timestamptz
      AND (s.created_at, s.id) > (${after?.at ?? '-infinity'}::timestamptz, ${after?.ids[0] ?? firstId}::uuid)
    ORDER BY s.created_at, s.id
    LIMIT ${limit}`,
  );
  const over = seen.filter((row) => row.is_over).map(({ id }) => id);
  const removed = over.length === 0 ? 0 : await db.transaction((tx) => archive(tx, over, unsentEvents));
  return { removed, last: placeOf(seen, limit) };
}

const firstId = '00000000-0000-0000-0000-000000000000';

/**
 * The events of a saga are added in the transactions that change it: who sees its end sees all of them. In statements
 * of their own, because the DELETE is refused for what is not in the archive yet.
 */
async function archive(
  tx: Queryable,
  over: readonly string[],
  unsentEvents: SagaRetentionOptions['unsentEvents'],
): Promise<number> {
  const held = await tx.query<{ id: string }>(sql`
    SELECT s.id
    FROM ${rowsOf(sql`over`, over, [[sql`id`, sql`uuid[]`, (id) => id]])}
    JOIN saga.saga_states s ON s.id = over.id
    WHERE s.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
    ORDER BY s.id
    FOR UPDATE OF s SKIP LOCKED`);
  const ended = held.map(({ id }) => id);
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
  abort_reason, abort_at, pivot_opened, compensation, needs_person, stuck_step, stuck_op, stuck_reason, trace,
  lease_owner, lease_until, lease_epoch, lease_lost, setbacks, runs_alone`;

const logColumns: Sql = sql`
  id, saga_id, step_index, step_name, action, status, request_payload, response_payload, error_message, started_at,
  completed_at, updated_at, attempt, answer, is_unsent, is_last, actor, reason`;

/** What was archived before a time was started before it, too. */
async function forgetBatch(
  db: Database,
  { archiveRetentionMs }: SagaRetentionOptions,
  { after, limit }: Batch,
): Promise<Walked> {
  const cutoff = sql`now() - ${interval(archiveRetentionMs)}`;
  const seen = await inIndexOrder<SeenRow>(
    db,
    sql`
    SELECT a.id, a.created_at::text AS at, a.archived_at < ${cutoff} AS is_over
    FROM saga.saga_states_archive a
    WHERE a.created_at < ${cutoff} AND a.created_at >= ${after?.at ?? '-infinity'}::timestamptz
      AND (a.created_at, a.id) > (${after?.at ?? '-infinity'}::timestamptz, ${after?.ids[0] ?? firstId}::uuid)
    ORDER BY a.created_at, a.id
    LIMIT ${limit}`,
  );
  const over = seen.filter((row) => row.is_over).map(({ id }) => id);
  const gone =
    over.length === 0
      ? []
      : await db.query(sql`
          WITH logs AS (DELETE FROM saga.saga_step_logs_archive WHERE saga_id = ANY(${over}::uuid[]))
          DELETE FROM saga.saga_states_archive WHERE id = ANY(${over}::uuid[]) RETURNING 1`);
  return { removed: gone.length, last: placeOf(seen, limit) };
}

type KeyRow = Readonly<{ at: string; workflow_name: string; key: string; is_over: boolean }>;

/** A key outlives its saga: while the saga is among those that run or have just ended, whoever repeats it is answered. */
async function removeStartKeys(db: Database, { after, limit }: Batch): Promise<Walked> {
  const [name, key] = after?.ids ?? ['', ''];
  const from = after?.at ?? '-infinity';
  const seen = await inIndexOrder<KeyRow>(
    db,
    sql`
    SELECT k.expires_at::text AS at, k.workflow_name, k.key,
           NOT EXISTS (SELECT 1 FROM saga.saga_states s WHERE s.id = k.saga_id) AS is_over
    FROM saga.saga_start_keys k
    WHERE k.expires_at < now() AND k.expires_at >= ${from}::timestamptz
      AND (k.expires_at, k.workflow_name, k.key) > (${from}::timestamptz, ${name}, ${key})
    ORDER BY k.expires_at, k.workflow_name, k.key
    LIMIT ${limit}`,
  );
  const over = seen.filter((row) => row.is_over);
  const gone =
    over.length === 0
      ? []
      : await db.query(sql`
          DELETE FROM saga.saga_start_keys k
          USING unnest(${over.map((row) => row.workflow_name)}::text[], ${over.map((row) => row.key)}::text[])
                  AS over (workflow_name, key)
          WHERE k.workflow_name = over.workflow_name AND k.key = over.key AND k.expires_at < now()
          RETURNING 1`);
  const last = seen.at(-1);
  const isEnd = last === undefined || seen.length < limit;
  return { removed: gone.length, last: isEnd ? null : { at: last.at, ids: [last.workflow_name, last.key] } };
}
