import { recordAct } from '../../../platform/audit/record-act.ts';
import { policyAct } from '../../../platform/audit/system-act.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { addNotifyEvent } from '../../../platform/work/notify-events.ts';
import { changePolicy, nextStep, roundPauseMs, type PolicyStep } from '../../domain/retry-policy.ts';
import { changeRedrive } from '../planned/command-redrive.ts';
import { insertRedrive } from '../planned/create-redrive.ts';
import { summaryOf, type Receipt } from '../planned/end-redrive.ts';
import type { PlanCounts } from '../planned/plan-tally.ts';
import { deleteItems } from '../planned/plan-redrive.ts';
import type { RedriveFilter } from '../planned/redrives-table.ts';
import {
  actorOfPolicy,
  definitionOf,
  lockPolicy,
  type PolicyRow,
  type RetryPolicy,
} from './policies-table.ts';
import { findDue, postponeDue } from './schedule-messages.ts';

/** What happened to the rounds of a policy. */
export const roundResults = ['made', 'finished', 'empty', 'failed', 'outage', 'disabled'] as const;
export type RoundResult = (typeof roundResults)[number];

export type RoundDeps = Readonly<{
  db: Database;
  makeId: () => string;
  /** As configured, by name. */
  policies: ReadonlyMap<string, RetryPolicy>;
  /** Of one round. */
  maxMessages: number;
  onRound: (policy: string, result: RoundResult) => void;
}>;

/**
 * Takes the next step of a policy, in one transaction that holds its row: what a step does, and that it was done, is
 * committed together. So two processes that both believe in their lease take each step once, and one that is killed
 * leaves a step undone, never half done.
 */
export async function takeStep(deps: RoundDeps, name: string): Promise<PolicyStep> {
  const results: RoundResult[] = [];
  const step = await deps.db.transaction(async (tx) => {
    const policy = await lockPolicy(tx, name);
    if (policy === null) return 'wait';
    const next = nextStep(policy);
    const result = await perform(deps, tx, policy, next);
    if (result !== null) results.push(result);
    return next;
  });
  for (const result of results) deps.onRound(name, result);
  return step;
}

async function perform(
  deps: RoundDeps,
  tx: Queryable,
  policy: PolicyRow,
  step: PolicyStep,
): Promise<RoundResult | null> {
  const { name, redriveId } = policy;
  if (step === 'make') return makeRedrive(deps, tx, policy);
  if (step === 'wait' || redriveId === null) return null;
  const by = (reason: string | null) => ({
    id: redriveId,
    actor: actorOfPolicy(name),
    reason,
    act: policyAct(name, 'dlq:redrives:start', reason),
  });
  switch (step) {
    case 'start':
      await changeRedrive(tx, { ...by(null), command: 'start' });
      return null;
    case 'withdraw':
      await changeRedrive(tx, { ...by('the policy is not configured any more'), command: 'cancel' });
      return null;
    case 'give_up':
      await changeRedrive(tx, { ...by(`outage: ${policy.redriveReason ?? ''}`), command: 'cancel' });
      await rest(tx, policy);
      return 'outage';
    case 'disable':
      return disable(tx, policy, redriveId);
    case 'discard':
      return discard(tx, policy, redriveId);
    case 'close':
      return close(tx, policy, redriveId);
  }
}

async function makeRedrive(
  { makeId, policies, maxMessages }: RoundDeps,
  tx: Queryable,
  { name }: PolicyRow,
): Promise<RoundResult | null> {
  const policy = policies.get(name);
  const filter = policy === undefined ? null : await findDue(tx, name, maxMessages);
  if (policy === undefined || filter === null) return null;
  const { rate_per_second, canary } = definitionOf(policy);
  const reason = `automatic retry by policy ${name}`;
  const id = await insertRedrive(tx, makeId(), {
    kind: 'retry',
    filter,
    options: { rate_per_second, order: 'key', canary },
    actor: actorOfPolicy(name),
    reason,
    act: policyAct(name, 'dlq:redrives:plan', reason),
    policy: name,
  });
  await tx.query(sql`
    UPDATE dlq.retry_policies
    SET redrive_id = ${id}, last_redrive_id = ${id}, round_at = clock_timestamp(), not_before = NULL
    WHERE name = ${name}`);
  return 'made';
}

/** Until the next round, longer after each failure in a row. */
async function rest(tx: Queryable, { name, failures }: PolicyRow): Promise<void> {
  await tx.query(sql`
    UPDATE dlq.retry_policies
    SET failures = failures + 1,
        not_before = clock_timestamp() + ${roundPauseMs(failures + 1)} * interval '1 millisecond'
    WHERE name = ${name}`);
}

async function disable(tx: Queryable, policy: PolicyRow, redriveId: string): Promise<RoundResult> {
  const { name, redriveReason } = policy;
  const reason = `its redrive ${redriveId} was stopped: ${redriveReason ?? 'too many messages came back'}`;
  await tx.query(sql`
    UPDATE dlq.retry_policies
    SET state = ${changePolicy(policy.state, 'disable')}, state_reason = ${reason}, state_actor = ${actorOfPolicy(name)},
        state_at = clock_timestamp()
    WHERE name = ${name}`);
  await recordAct(tx, policyAct(name, 'dlq:policies:disable', reason), {
    resource: `dlq/policies/${name}`,
    operationId: redriveId,
    detail: { change: 'disable', from: policy.state, to: 'disabled' },
  });
  await addNotifyEvent(tx, {
    slice: 'dlq',
    kind: 'policy_disabled',
    subject: name,
    itemId: name,
    summary: reason,
  });
  return 'disabled';
}

type EndedRedrive = Readonly<{
  state: string;
  stateReason: string | null;
  filter: RedriveFilter;
  plan: PlanCounts | null;
  receipt: Receipt | null;
}>;

async function readEnded(tx: Queryable, id: string): Promise<EndedRedrive | null> {
  const [row] = await tx.query<EndedRedrive>(sql`
    SELECT state, state_reason AS "stateReason", filter, counts AS plan, receipt FROM dlq.redrives WHERE id = ${id}`);
  return row ?? null;
}

/** A plan that failed, or that selected nothing, leaves no redrive; the policy shows why. */
async function discard(tx: Queryable, policy: PolicyRow, redriveId: string): Promise<RoundResult> {
  const redrive = await readEnded(tx, redriveId);
  const isFailed = redrive?.state === 'failed';
  if (isFailed) await rest(tx, policy);
  else if (redrive !== null) await postponeDue(tx, redrive.filter, policy.delay);
  await deleteItems(tx, redriveId);
  await tx.query(sql`DELETE FROM dlq.redrives WHERE id = ${redriveId}`);
  await endRound(tx, policy, isFailed ? (redrive.stateReason ?? 'the plan failed') : nothingToSend(redrive));
  return isFailed ? 'failed' : 'empty';
}

function nothingToSend(redrive: EndedRedrive | null): string {
  const excluded = (redrive?.plan?.excluded ?? []).map(({ reason, count }) => `${count} ${reason}`);
  return excluded.length === 0 ? 'nothing was due any more' : `nothing could be sent: ${excluded.join(', ')}`;
}

async function close(tx: Queryable, policy: PolicyRow, redriveId: string): Promise<RoundResult | null> {
  const redrive = await readEnded(tx, redriveId);
  if (redrive !== null) await postponeDue(tx, redrive.filter, policy.delay);
  const isFinished = redrive?.state === 'finished';
  if (isFinished) await tx.query(sql`UPDATE dlq.retry_policies SET failures = 0 WHERE name = ${policy.name}`);
  await endRound(tx, policy, endOf(redrive));
  return isFinished ? 'finished' : null;
}

function endOf(redrive: EndedRedrive | null): string {
  if (redrive === null) return 'its redrive was deleted';
  const { state, stateReason, receipt } = redrive;
  const how = state === 'finished' ? [] : [`${state}${stateReason === null ? '' : ` (${stateReason})`}`];
  return [...how, ...(receipt === null ? [] : [summaryOf(receipt)])].join(': ');
}

async function endRound(tx: Queryable, { name }: PolicyRow, result: string): Promise<void> {
  await tx.query(sql`
    UPDATE dlq.retry_policies SET redrive_id = NULL, last_result = ${result} WHERE name = ${name}`);
}
