import type { Rights } from '../../../../kernel/access/rights.ts';
import type { Act } from '../../../../kernel/audit/act.ts';
import { AppError } from '../../../../kernel/errors.ts';
import type { Database, Queryable } from '../../../../platform/postgres/database.ts';
import { sql } from '../../../../platform/postgres/sql.ts';
import { refusalToApprove, type Approval } from '../../../domain/approval.ts';
import type { RedriveState } from '../../../domain/redrive.ts';
import { recordRedrive } from '../record-redrive.ts';
import { redriveNotFound } from '../redrives-table.ts';

export type ApproveDeps = Readonly<{ db: Database; rights: Pick<Rights, 'personOf'> }>;

export type ToApprove = Readonly<{
  id: string;
  actor: string;
  /** Not a key or a service. */
  isUser: boolean;
  reason: string;
  act: Act;
}>;

/** A second person approves a plan as it is now: a change that comes between is a conflict. */
export async function approveRedrive({ db, rights }: ApproveDeps, approve: ToApprove): Promise<void> {
  const { id, actor, isUser, reason, act } = approve;
  const plan = await readPlan(db, id);
  const refusal = refusalToApprove({
    planner: await rights.personOf(plan.actor),
    editors: await Promise.all(plan.editors.map((editor) => rights.personOf(editor))),
    approver: await rights.personOf(actor),
    isUser,
  });
  if (refusal !== null) throw new AppError('SYS_AUTH_PERMISSION_DENIED', 'forbidden', refusal);
  if (plan.state !== 'awaiting_approval')
    throw conflict(`redrive is ${plan.state}: approve needs awaiting_approval`);
  if (plan.approval !== null) throw conflict(`redrive was approved by ${plan.approval.actor}`);
  await db.transaction(async (tx) => {
    const rows = await tx.query(sql`
      UPDATE dlq.redrives
      SET approval = jsonb_build_object('actor', ${actor}::text, 'at', clock_timestamp(), 'reason', ${reason}::text),
          revision = revision + 1
      WHERE id = ${id} AND state = 'awaiting_approval' AND revision = ${plan.revision} AND approval IS NULL
      RETURNING 1`);
    if (rows.length === 0) throw conflict('redrive was changed meanwhile: look at it again');
    await recordRedrive(tx, act, { id, items: plan.selected, detail: { change: 'approve' } });
  });
}

type Plan = Readonly<{
  state: RedriveState;
  actor: string;
  editors: readonly string[];
  approval: Approval | null;
  selected: number;
  revision: bigint;
}>;

async function readPlan(db: Queryable, id: string): Promise<Plan> {
  const [plan] = await db.query<Plan>(sql`
    SELECT state, actor, editors, approval, COALESCE((counts->>'selected')::int, 0) AS selected, revision
    FROM dlq.redrives WHERE id = ${id}`);
  if (plan === undefined) throw redriveNotFound(id);
  return plan;
}

function conflict(message: string): AppError {
  return new AppError('SYS_DLQ_CONFLICT', 'conflict', message);
}
