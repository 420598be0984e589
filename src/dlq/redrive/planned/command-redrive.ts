import type { Act } from '../../../kernel/audit/act.ts';
import { AppError } from '../../../kernel/errors.ts';
import { invalidField } from '../../../platform/http/slice-input.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import { notify } from '../../../platform/work/wake.ts';
import {
  changeState,
  planLifeHours,
  statesBefore,
  type RedriveCommand,
  type RedriveState,
} from '../../domain/redrive.ts';
import { recordRedrive } from './record-redrive.ts';
import { redriveNotFound, redrivesChannel } from './redrives-table.ts';

export type Command = Readonly<{
  id: string;
  command: RedriveCommand;
  actor: string;
  reason: string | null;
  act: Act;
}>;

/**
 * Changes the state of a redrive. The update waits for a claim that holds the row, so once it has returned nothing is
 * claimed in the former state.
 */
export async function commandRedrive(db: Database, command: Command): Promise<void> {
  await db.transaction((tx) => changeRedrive(tx, command));
}

export async function changeRedrive(tx: Queryable, given: Command): Promise<void> {
  const { id, command, actor, reason } = given;
  const { state, hasCanary, isOld, selected } = await lockState(tx, id);
  if (command === 'start' && isOld)
    throw new AppError(
      'SYS_DLQ_CONFLICT',
      'conflict',
      `redrive is expired: it was not started within ${planLifeHours} hours; plan it again`,
    );
  const next = changeState(state, command);
  if (next === null)
    throw new AppError(
      'SYS_DLQ_CONFLICT',
      'conflict',
      `redrive is ${state}: ${command} needs ${statesBefore(command).join(' or ')}`,
    );
  if (command === 'resume' && state === 'stopped' && hasCanary && reason === null)
    throw invalidField('dlq', 'reason', 'required', 'is required to resume a stopped redrive with a canary');
  await tx.query(sql`
    UPDATE dlq.redrives
    SET state = ${next}, state_reason = ${reason === null ? `${command} by ${actor}` : `${command} by ${actor}: ${reason}`},
        revision = revision + 1, ${command === 'start' || command === 'resume' ? sql`started_by = ${actor},` : sql``}
        ${timesOf(command, state)}
    WHERE id = ${id}`);
  await recordRedrive(tx, given.act, {
    id,
    items: selected,
    detail: { change: command, from: state, to: next },
  });
  await notify(tx, redrivesChannel);
}

type Locked = Readonly<{
  state: RedriveState;
  hasCanary: boolean;
  /** A plan that is due to expire, whether or not that was noticed yet. */
  isOld: boolean;
  selected: number;
}>;

async function lockState(tx: Queryable, id: string): Promise<Locked> {
  const [row] = await tx.query<Locked>(sql`
    SELECT state, COALESCE(jsonb_typeof(options->'canary') = 'object', false) AS "hasCanary",
           COALESCE(state = ANY(${statesBefore('start')}::text[])
             AND planned_at < clock_timestamp() - ${planLifeHours} * interval '1 hour', false) AS "isOld",
           COALESCE((counts->>'selected')::int, 0) AS selected
    FROM dlq.redrives WHERE id = ${id} FOR NO KEY UPDATE`);
  if (row === undefined) throw redriveNotFound(id);
  return row;
}

/** A pause extends the window of a canary; after a stop it begins again, and what came back before no longer counts. */
function timesOf(command: RedriveCommand, state: RedriveState): Sql {
  switch (command) {
    case 'start':
      return sql`started_at = clock_timestamp()`;
    case 'cancel':
      return sql`finished_at = clock_timestamp(), waiting_for = NULL`;
    case 'pause':
      return sql`paused_at = clock_timestamp(), waiting_for = NULL`;
    case 'resume':
      return state === 'paused'
        ? sql`watch_until = watch_until + (clock_timestamp() - COALESCE(paused_at, clock_timestamp())), paused_at = NULL`
        : sql`counted_from = clock_timestamp(), waiting_for = NULL,
              watch_until = CASE WHEN watch_until IS NOT NULL THEN
                clock_timestamp() + (options #>> '{canary,watch_seconds}')::float8 * interval '1 second' END`;
  }
}
