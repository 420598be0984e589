import { AppError } from '../../../kernel/errors.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import { notify } from '../../../platform/work/wake.ts';
import { changeState, statesBefore, type RedriveCommand, type RedriveState } from '../../domain/redrive.ts';
import { redriveNotFound, redrivesChannel } from './redrives-table.ts';

export type Command = Readonly<{ id: string; command: RedriveCommand; actor: string; reason: string | null }>;

/**
 * Changes the state of a redrive. The update waits for a claim that holds the row, so once it has returned nothing is
 * claimed in the former state.
 */
export async function commandRedrive(db: Database, { id, command, actor, reason }: Command): Promise<void> {
  await db.transaction(async (tx) => {
    const state = await lockState(tx, id);
    const next = changeState(state, command);
    if (next === null)
      throw new AppError(
        'SYS_DLQ_CONFLICT',
        'conflict',
        `redrive is ${state}: ${command} needs ${statesBefore(command).join(' or ')}`,
      );
    await tx.query(sql`
      UPDATE dlq.redrives
      SET state = ${next}, state_reason = ${reason === null ? `${command} by ${actor}` : `${command} by ${actor}: ${reason}`},
          ${timesOf(command)}
      WHERE id = ${id}`);
    await notify(tx, redrivesChannel);
  });
}

async function lockState(tx: Queryable, id: string): Promise<RedriveState> {
  const [row] = await tx.query<{ state: RedriveState }>(sql`
    SELECT state FROM dlq.redrives WHERE id = ${id} FOR NO KEY UPDATE`);
  if (row === undefined) throw redriveNotFound(id);
  return row.state;
}

function timesOf(command: RedriveCommand): Sql {
  switch (command) {
    case 'start':
      return sql`started_at = clock_timestamp()`;
    case 'cancel':
      return sql`finished_at = clock_timestamp()`;
    case 'pause':
    case 'resume':
      return sql`started_at = COALESCE(started_at, clock_timestamp())`;
  }
}
