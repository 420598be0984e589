import type { Lease } from '../../kernel/lease.ts';
import { cleanText } from '../../kernel/text.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { rowsOf, type Column } from '../../platform/postgres/rows-of.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { MOST_SETBACKS } from '../domain/setbacks.ts';
import { setbackPauseMs } from '../usecase/setback-pause.ts';
import { isActive } from './saga-rows.ts';
import { tellPeople } from './settle-sagas.ts';

/** Due at a time, or after a pause; as a setback, where it came to nothing through its own fault. */
export type GivenBack = Readonly<{ id: string; dueAt?: Date; pauseMs?: number; isSetback?: boolean }>;

const givenBackColumns: readonly Column<GivenBack>[] = [
  [sql`id`, sql`uuid[]`, ({ id }) => id],
  [sql`due_at`, sql`timestamptz[]`, ({ dueAt }) => dueAt ?? null],
  [sql`pause_ms`, sql`float8[]`, ({ pauseMs }) => pauseMs ?? 0],
  [sql`setbacks`, sql`int[]`, ({ isSetback }) => (isSetback === true ? 1 : 0)],
];

/** Lets go what was claimed and cannot be driven here, or not now. The mark of a lost worker stays. */
export async function giveBack(
  db: Database,
  { epoch }: Pick<Lease, 'epoch'>,
  back: readonly GivenBack[],
): Promise<void> {
  await db.query(sql`
    UPDATE saga.saga_states t
    SET lease_owner = NULL, lease_until = NULL, setbacks = t.setbacks + back.setbacks,
        wake_at = COALESCE(back.due_at, clock_timestamp() + back.pause_ms * interval '1 millisecond')
    FROM ${rowsOf(sql`back`, back, givenBackColumns)}
    WHERE t.id = back.id AND t.lease_epoch = ${epoch} AND t.lease_owner IS NOT NULL AND ${isActive}
      AND NOT t.needs_person`);
}

/** Lets go a saga that could not be read: it comes back later and later, and then a person is asked. */
export async function giveBackUnread(
  db: Database,
  lease: Pick<Lease, 'epoch'>,
  { id, setbacks }: Readonly<{ id: string; setbacks: number }>,
  why: string,
): Promise<void> {
  const count = setbacks + 1;
  if (count >= MOST_SETBACKS) return askPerson(db, lease, id, `it cannot be read: ${why}`);
  return giveBack(db, lease, [{ id, pauseMs: setbackPauseMs(count), isSetback: true }]);
}

const maxReasonBytes = 4000;

/**
 * Without its log, which may be what cannot be read: the step is the first that has not been passed, as the last settle
 * left it.
 */
async function askPerson(
  db: Database,
  { epoch }: Pick<Lease, 'epoch'>,
  id: string,
  reason: string,
): Promise<void> {
  await db.query(sql`
    WITH settled AS (
      UPDATE saga.saga_states t
      SET lease_owner = NULL, lease_until = NULL, wake_at = NULL, setbacks = 0, runs_alone = false,
          status = CASE t.status WHEN 'STARTED' THEN 'RUNNING' ELSE t.status END,
          compensation = CASE t.status WHEN 'COMPENSATING' THEN 'stuck' ELSE t.compensation END,
          needs_person = true, stuck_step = t.current_step,
          stuck_op = CASE t.status WHEN 'COMPENSATING' THEN 'COMPENSATE' ELSE 'EXECUTE' END,
          stuck_reason = ${cleanText(reason, maxReasonBytes)}
      WHERE t.id = ${id} AND t.lease_epoch = ${epoch} AND t.lease_owner IS NOT NULL AND ${isActive}
        AND NOT t.needs_person
      RETURNING t.id, t.workflow_name, t.needs_person, t.stuck_op, t.stuck_reason
    )${tellPeople}
    SELECT FROM settled`);
}
