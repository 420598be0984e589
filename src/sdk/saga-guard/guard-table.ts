import { Sql, sql } from '../../platform/postgres/sql.ts';
import type { GuardRow, Phase, StoredAnswer } from './decide-guarded-call.ts';
import type { Ask } from './guard-transaction.ts';

const NAME = 'redrive_saga_steps';

/** A schema name as SQL; from the service's configuration, never from input. */
function quoted(schema: string): string {
  return `"${schema.replaceAll('"', '""')}"`;
}

/** The guard's table, always with its schema: the search path of a session is unknown. */
export function guardTable(schema: string): Sql {
  return new Sql([`${quoted(schema)}.${NAME}`], []);
}

/**
 * The SQL of the table, for a service's own migrations; safe to run repeatedly. The primary key is the saga and step, not
 * the idempotency key, so that an action and its undo compete for one row.
 */
export function sagaGuardMigration(schema = 'public'): string {
  const table = `${quoted(schema)}.${NAME}`;
  return `CREATE TABLE IF NOT EXISTS ${table} (
  saga_id        text        NOT NULL,
  step           text        NOT NULL,
  phase          text        NOT NULL CHECK (phase IN ('working', 'done', 'refused', 'undone', 'void')),
  undo_requested boolean     NOT NULL DEFAULT false,
  run            integer     NOT NULL DEFAULT 1,
  lease_until    timestamptz,
  request_digest text,
  answer_status  smallint,
  answer         text,
  settled_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (saga_id, step),
  CHECK ((phase = 'working') = (lease_until IS NOT NULL))
);
CREATE INDEX IF NOT EXISTS ${NAME}_by_age ON ${table} (phase, settled_at);
COMMENT ON TABLE ${table} IS 'What came of each step of a saga here; kept by the saga guard of redrive.';
`;
}

export type StepKey = Readonly<{ sagaId: string; step: string }>;

/** The initial row; `leaseMs` is null unless the phase is working. */
export type NewRow = Readonly<{ phase: Phase; digest: string | null; leaseMs: number | null }>;

/** True if there was no row. Waits for a concurrent insert to commit or roll back. */
export async function insertRow(ask: Ask, table: Sql, key: StepKey, row: NewRow): Promise<boolean> {
  const rows = await ask(sql`
    INSERT INTO ${table} (saga_id, step, phase, request_digest, lease_until)
    VALUES (${key.sagaId}, ${key.step}, ${row.phase}, ${row.digest}, ${leaseEnd(row.leaseMs)})
    ON CONFLICT (saga_id, step) DO NOTHING
    RETURNING phase`);
  return rows.length === 1;
}

function leaseEnd(leaseMs: number | null): Sql {
  if (leaseMs === Number.POSITIVE_INFINITY) return sql`'infinity'::timestamptz`;
  return sql`clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond'`;
}

/** Null if the row was deleted meanwhile. */
export async function selectRow(
  ask: Ask,
  table: Sql,
  key: StepKey,
  lock: 'locked' | 'unlocked',
): Promise<GuardRow | null> {
  const [row] = await ask(sql`
    SELECT phase, undo_requested::text, run::text, request_digest, answer_status::text, answer,
           coalesce(lease_until <= clock_timestamp(), false)::text AS is_lease_over,
           coalesce(lease_until = 'infinity', false)::text AS is_deferred
    FROM ${table}
    WHERE saga_id = ${key.sagaId} AND step = ${key.step}
    ${lock === 'locked' ? sql`FOR UPDATE` : sql``}`);
  if (row === undefined) return null;
  const status = row['answer_status'] ?? null;
  return {
    phase: row['phase'] as Phase,
    isUndoRequested: row['undo_requested'] === 'true',
    isLeaseOver: row['is_lease_over'] === 'true',
    isDeferred: row['is_deferred'] === 'true',
    run: Number(row['run']),
    digest: row['request_digest'] ?? null,
    answer: status === null ? null : { status: Number(status), body: row['answer'] ?? null },
  };
}

/** Restarts a long action whose lease has expired; false if another call was faster. */
export async function takeOver(
  ask: Ask,
  table: Sql,
  key: StepKey,
  next: Readonly<{ lostRun: number; phase: 'working' | 'done'; leaseMs: number | null }>,
): Promise<boolean> {
  const rows = await ask(sql`
    UPDATE ${table}
    SET phase = ${next.phase}, run = run + 1, lease_until = ${leaseEnd(next.leaseMs)},
        settled_at = clock_timestamp()
    WHERE saga_id = ${key.sagaId} AND step = ${key.step}
      AND phase = 'working' AND run = ${next.lostRun} AND NOT undo_requested
      AND lease_until <= clock_timestamp()
    RETURNING phase`);
  return rows.length === 1;
}

/** Stores the answer of an action whose row became done in this transaction. */
export async function storeAnswer(
  ask: Ask,
  table: Sql,
  key: StepKey,
  answer: StoredAnswer,
): Promise<boolean> {
  const rows = await ask(sql`
    UPDATE ${table} SET answer_status = ${answer.status}, answer = ${answer.body}
    WHERE saga_id = ${key.sagaId} AND step = ${key.step} AND phase = 'done' AND answer_status IS NULL
    RETURNING phase`);
  return rows.length === 1;
}

/** Ends an action whose row this transaction has locked; `from` is the phase that it must still have. */
export async function settleRow(
  ask: Ask,
  table: Sql,
  key: StepKey,
  { from, to, answer }: Readonly<{ from: Phase; to: Phase; answer: StoredAnswer | null }>,
): Promise<boolean> {
  const rows = await ask(sql`
    UPDATE ${table}
    SET phase = ${to}, answer_status = ${answer?.status ?? null}, answer = ${answer?.body ?? null},
        lease_until = NULL, settled_at = clock_timestamp()
    WHERE saga_id = ${key.sagaId} AND step = ${key.step} AND phase = ${from}
    RETURNING phase`);
  return rows.length === 1;
}

/** The process that runs the long action sees it at its next renewal, or at the end. */
export async function requestUndo(ask: Ask, table: Sql, key: StepKey): Promise<void> {
  await ask(sql`
    UPDATE ${table} SET undo_requested = true
    WHERE saga_id = ${key.sagaId} AND step = ${key.step} AND phase = 'working'`);
}
