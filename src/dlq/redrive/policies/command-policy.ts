import type { Act } from '../../../kernel/audit/act.ts';
import { AppError } from '../../../kernel/errors.ts';
import { recordAct } from '../../../platform/audit/record-act.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import type { RedriveCommand } from '../../domain/redrive.ts';
import { changePolicy, policyStatesBefore, type PolicyCommand } from '../../domain/retry-policy.ts';
import { changeRedrive } from '../planned/command-redrive.ts';
import { lockPolicy, policyNotFound, type PolicyRow } from './policies-table.ts';

export type PolicyAction = Readonly<{
  name: string;
  command: PolicyCommand;
  actor: string;
  reason: string;
  act: Act;
}>;

/**
 * Pauses or resumes a policy, and with it the redrive of its open round: after a pause has been answered the policy
 * sends nothing. To resume a policy whose redrive was stopped cancels that redrive; the next rounds take its messages.
 */
export async function commandPolicy(db: Database, action: PolicyAction): Promise<void> {
  const { name, command, actor, reason } = action;
  await db.transaction(async (tx) => {
    const policy = await lockPolicy(tx, name);
    if (policy === null) throw policyNotFound(name);
    const next = changePolicy(policy.state, command);
    if (next === null)
      throw new AppError(
        'SYS_DLQ_CONFLICT',
        'conflict',
        `policy ${name} is ${policy.state}: ${command} needs ${policyStatesBefore(command).join(' or ')}`,
      );
    await tx.query(sql`
      UPDATE dlq.retry_policies
      SET state = ${next}, state_reason = ${reason}, state_actor = ${actor}, state_at = clock_timestamp(),
          failures = 0, not_before = NULL
      WHERE name = ${name}`);
    await recordAct(tx, action.act, {
      resource: `dlq/policies/${name}`,
      operationId: policy.redriveId,
      detail: { change: command, from: policy.state, to: next },
    });
    await changeRound(tx, policy, action);
  });
}

async function changeRound(
  tx: Queryable,
  { round, redriveId }: PolicyRow,
  { name, command, actor, reason, act }: PolicyAction,
): Promise<void> {
  if (redriveId === null || round === null || round === 'gone') return;
  const change = changeOf(command, round.state);
  if (change === null) return;
  await changeRedrive(tx, {
    id: redriveId,
    command: change,
    actor,
    act,
    reason: `policy ${name}: ${reason}`,
  });
}

function changeOf(command: PolicyCommand, state: string): RedriveCommand | null {
  if (command === 'pause') return state === 'running' ? 'pause' : null;
  if (state === 'paused') return 'resume';
  return state === 'stopped' ? 'cancel' : null;
}
