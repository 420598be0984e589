import { backoffMs } from '../../kernel/backoff.ts';
import type { Lease } from '../../kernel/lease.ts';
import { fingerprintOfText } from '../../kernel/fingerprint/text-fingerprint.ts';
import { cleanText } from '../../kernel/text.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { unnestRows, type Column } from '../../platform/postgres/unnest-rows.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { MAX_FAILED_ROUNDS } from '../domain/failed-rounds.ts';
import { isActive } from '../saga-table.ts';
import { notifyStuck } from '../write-sagas.ts';

/** Due at a time or after a pause; `isFailedRound` if the saga itself is the cause. */
export type Release = Readonly<{ id: string; dueAt?: Date; pauseMs?: number; isFailedRound?: boolean }>;

const releaseColumns: readonly Column<Release>[] = [
  [sql`id`, sql`uuid[]`, ({ id }) => id],
  [sql`due_at`, sql`timestamptz[]`, ({ dueAt }) => dueAt ?? null],
  [sql`pause_ms`, sql`float8[]`, ({ pauseMs }) => pauseMs ?? 0],
  [sql`failed_rounds`, sql`int[]`, ({ isFailedRound }) => (isFailedRound === true ? 1 : 0)],
];

/** Releases claimed sagas that cannot be run here or now. `lease_lost` stays as it is. */
export async function releaseSagas(
  db: Queryable,
  { epoch }: Pick<Lease, 'epoch'>,
  releases: readonly Release[],
): Promise<void> {
  await db.query(sql`
    UPDATE saga.saga_states t
    SET lease_owner = NULL, lease_until = NULL, failed_rounds = t.failed_rounds + released.failed_rounds,
        wake_at = COALESCE(released.due_at, clock_timestamp() + released.pause_ms * interval '1 millisecond')
    FROM ${unnestRows(sql`released`, releases, releaseColumns)}
    WHERE t.id = released.id AND t.lease_epoch = ${epoch} AND t.lease_owner IS NOT NULL AND ${isActive}
      AND NOT t.needs_attention`);
}

const failedRoundBackoff = { initialMs: 1000, maxMs: 300_000, jitter: 0.2 };

/** Releases a saga whose round failed; it backs off by the number of failed rounds in a row before this one. */
export async function failRound(
  db: Queryable,
  { id, lease, failedRounds }: Readonly<{ id: string; lease: Pick<Lease, 'epoch'>; failedRounds: number }>,
  random: () => number = Math.random,
): Promise<void> {
  const pauseMs = backoffMs(failedRoundBackoff, failedRounds + 1, random);
  return releaseSagas(db, lease, [{ id, pauseMs, isFailedRound: true }]);
}

/** Releases a saga that could not be read, as a failed round; after too many of them it needs attention. */
export async function releaseUnreadable(
  db: Queryable,
  lease: Pick<Lease, 'epoch'>,
  { id, failed_rounds: failedRounds }: Readonly<{ id: string; failed_rounds: number }>,
  why: string,
): Promise<void> {
  if (failedRounds + 1 >= MAX_FAILED_ROUNDS) return markStuck(db, lease, id, `it cannot be read: ${why}`);
  return failRound(db, { id, lease, failedRounds });
}

const maxReasonBytes = 4000;

/** Does not read the log, which may be the cause: the saga is stuck at `current_step`, as the last settle left it. */
async function markStuck(
  db: Queryable,
  { epoch }: Pick<Lease, 'epoch'>,
  id: string,
  reason: string,
): Promise<void> {
  const stored = cleanText(reason, maxReasonBytes);
  await db.query(sql`
    WITH settled AS (
      UPDATE saga.saga_states t
      SET lease_owner = NULL, lease_until = NULL, wake_at = NULL, failed_rounds = 0, runs_alone = false,
          waiting_for = NULL, waiting_since = NULL,
          status = CASE t.status WHEN 'STARTED' THEN 'RUNNING' ELSE t.status END,
          compensation = CASE t.status WHEN 'COMPENSATING' THEN 'stuck' ELSE t.compensation END,
          needs_attention = true, stuck_step = t.current_step,
          stuck_op = CASE t.status WHEN 'COMPENSATING' THEN 'COMPENSATE' ELSE 'EXECUTE' END,
          stuck_reason = ${stored}, fingerprint = ${fingerprintOfText(stored)}
      WHERE t.id = ${id} AND t.lease_epoch = ${epoch} AND t.lease_owner IS NOT NULL AND ${isActive}
        AND NOT t.needs_attention
      RETURNING t.id, t.workflow_name, t.needs_attention, t.stuck_op, t.stuck_reason
    )${notifyStuck}
    SELECT FROM settled`);
}
