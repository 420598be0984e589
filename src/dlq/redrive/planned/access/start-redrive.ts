import type { Rights } from '../../../../kernel/access/rights.ts';
import { AppError } from '../../../../kernel/errors.ts';
import type { Database, Queryable } from '../../../../platform/postgres/database.ts';
import { sql } from '../../../../platform/postgres/sql.ts';
import { refusalToStart, type Approval } from '../../../domain/approval.ts';
import { stateAfter, statesBefore, type RedriveState } from '../../../domain/redrive.ts';
import { messagesOfLastHour, noteBulkAct } from '../../bulk-acts.ts';
import { changeRedrive, type Command } from '../command-redrive.ts';
import { redriveNotFound } from '../redrives-table.ts';

export type StartDeps = Readonly<{
  db: Database;
  rights: Pick<Rights, 'personOf'>;
  /** How many messages of an hour need no approval; null: any number. */
  approvalBound: number | null;
}>;

/** Starts a plan. One that is too large for its starter awaits approval from now on, and the start is refused. */
export async function startRedrive(deps: StartDeps, command: Command): Promise<void> {
  const { db, rights, approvalBound: bound } = deps;
  const { id, actor } = command;
  const person = await rights.personOf(actor);
  const refusal = await db.transaction(async (tx) => {
    const lastHour = await messagesOfLastHour(tx, person);
    const { state, selected, approval } = await lockPlan(tx, id);
    const why = refusalToStart({ selected, lastHour, bound }, approval?.actor ?? null, person);
    if (why !== null && statesBefore('start').includes(state)) {
      await tx.query(sql`
        UPDATE dlq.redrives SET state = ${stateAfter('await_approval')}, revision = revision + 1
        WHERE id = ${id} AND state = ANY(${statesBefore('await_approval')}::text[])`);
      return why;
    }
    await changeRedrive(tx, command);
    await noteBulkAct(tx, person, selected);
    return null;
  });
  if (refusal !== null) throw new AppError('SYS_DLQ_APPROVAL_REQUIRED', 'conflict', refusal);
}

type Plan = Readonly<{ state: RedriveState; selected: number; approval: Approval | null }>;

async function lockPlan(tx: Queryable, id: string): Promise<Plan> {
  const [plan] = await tx.query<Plan>(sql`
    SELECT state, COALESCE((counts->>'selected')::int, 0) AS selected, approval
    FROM dlq.redrives WHERE id = ${id} FOR NO KEY UPDATE`);
  if (plan === undefined) throw redriveNotFound(id);
  return plan;
}
