import { randomUUID } from 'node:crypto';
import type { Act } from '../../kernel/audit/act.ts';
import { passes, type NameFilter } from '../../kernel/access/scope.ts';
import { AppError } from '../../kernel/errors.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { SoloGate } from '../../platform/work/solo-gate.ts';
import { isIncompleteWithout } from '../domain/dead-letter.ts';
import { isRetryable, type Status } from '../domain/message.ts';
import { messageNotFound, type FindHead, type MessageHead } from '../stored-message.ts';
import {
  claimMessages,
  mustRunAlone,
  type ClaimDeps,
  type ClaimedBatch,
  type Reroute,
} from './claim-messages.ts';
import { outcomesOf, publishClaimed, type Published, type PublishDeps } from './publish-claimed.ts';
import { recordStart, type RecordedRetry } from './record-retry.ts';
import { reapAttempts, settleAttempts, type SettleDeps } from './settle-messages.ts';

/**
 * A retry is one attempt: claim -> publish -> settle. The message's status changes like this:
 *
 *   PENDING --claim--> RETRYING --published-->        RESOLVED
 *                               --failed, unknown-->  PENDING, or DEAD if no attempt is left
 *                               --released-->         PENDING, and the attempt is not counted
 *                               --lease expired-->    as failed (the reaper)
 *   RESOLVED or RETRYING --the same record is dead-lettered again--> PENDING, or DEAD if no attempt is left
 *   PENDING, or RETRYING with an expired lease --mark dead--> DEAD
 *   DEAD, RESOLVED, or PENDING without an attempt left --reopen--> PENDING with a new budget
 *
 * The claim counts the attempt (`retry_count`, `attempt_no`) and takes a new epoch. So a message whose retry kills the
 * process every time ends DEAD, and a worker whose lease expired cannot settle any more. An attempt is `failed` if the
 * broker refused the record, `unknown` if it may have been written, and `released` if it was certainly not written and
 * the message is not the cause (see `ReleaseReason`).
 *
 * A message that lost its worker and has one attempt left runs alone in its process.
 */
export type RetryDeps = ClaimDeps &
  PublishDeps &
  SettleDeps &
  Readonly<{
    findHead: FindHead;
    gate: SoloGate;
    /** Where messages of a dead-letter topic go by today's rules. */
    routesOf: (deadLetterTopic: string) => Reroute;
    onAttempt: (outcome: string) => void;
  }>;

export type RetryResult = Readonly<{ status: Status; published: boolean }>;

/** Of two simultaneous retries of a message one claims it; the other one fails because it is not retryable now. */
export async function retryMessage(
  deps: RetryDeps,
  id: string,
  { actor, act, names = null }: Readonly<{ actor: string; act: Act; names?: NameFilter }>,
): Promise<RetryResult> {
  const message = await findRetryable(deps, id);
  if (isIncompleteWithout(message.removedParts)) throw incomplete(message);
  const reroute = rerouteOf(deps, message);
  requireAllowed(deps, message, { reroute, names });
  if (deps.publish !== null && !message.hasValue) throw valueless(message);

  const runsAlone = message.leaseLost && message.retryCount + 1 >= message.maxRetries;
  const recorded = { act, operationId: randomUUID() };
  const attempt = (): Promise<RetryResult> => attemptOnce(deps, { id, actor, recorded, reroute, runsAlone });
  return runsAlone ? deps.gate.alone(attempt) : deps.gate.together(attempt);
}

async function findRetryable(deps: RetryDeps, id: string): Promise<MessageHead> {
  let message = await deps.findHead(id);
  if (message?.status === 'RETRYING' && !message.leaseIsLive) {
    await reapAttempts(deps.worker.db, id);
    message = await deps.findHead(id);
  }
  if (message === null) throw messageNotFound(id);
  if (message.isArchived || !isRetryable(message)) throw notRetryable(message);
  return message;
}

function rerouteOf(deps: RetryDeps, message: MessageHead): Reroute {
  const routes = deps.routesOf(message.sourceTopic ?? message.originalTopic);
  if (message.unroutable && routes.unroutable === null) throw unroutable(message);
  if (message.unroutable || !deps.isDeadLetterTopic(message.originalTopic))
    return { ...routes, misnamed: null };
  if (routes.misnamed === null) throw unroutable(message);
  return routes;
}

/** Without a broker nothing is published, so targets do not matter. */
function requireAllowed(
  deps: RetryDeps,
  message: MessageHead,
  { reroute, names }: Readonly<{ reroute: Reroute; names: NameFilter }>,
): void {
  if (deps.publish === null) return;
  const target = (message.unroutable ? reroute.unroutable : reroute.misnamed) ?? message.originalTopic;
  if (!passes(names, target))
    throw new AppError(
      'SYS_AUTH_PERMISSION_DENIED',
      'forbidden',
      `this message goes to ${target}, which your role does not cover`,
    );
  if (message.isRouted) return;
  if (!deps.isAllowedTarget(target))
    throw conflict(
      `message must not be published to ${target}: dlq.allowed_targets does not list it; add it there, or route this message`,
    );
}

type Attempt = Readonly<{
  id: string;
  actor: string;
  recorded: RecordedRetry;
  reroute: Reroute;
  runsAlone: boolean;
}>;

async function attemptOnce(deps: RetryDeps, attempt: Attempt): Promise<RetryResult> {
  const { id, actor, recorded } = attempt;
  let batch = await claimMessage(deps, attempt);
  // A row that was written between the claim's snapshot and its lock is skipped, though nobody has it.
  if (batch.messages.length === 0) batch = await claimMessage(deps, attempt);
  if (batch.messages.length === 0) throw await explainLostClaim(deps, id);

  const published = await publishClaimed(deps, batch);
  const outcomes = outcomesOf(published);
  const statuses = await settleAttempts(deps, { lease: batch.lease, outcomes, actor, recorded });

  const one = published.get(id);
  deps.onAttempt(one?.outcome.end ?? 'released');
  return { status: statuses.get(id) ?? 'RETRYING', published: wasPublished(one) };
}

/** Exported for the test that compares the SQL with the model. */
export async function claimMessage(
  deps: ClaimDeps,
  { id, actor, recorded, reroute, runsAlone }: Attempt,
): Promise<ClaimedBatch> {
  const mayRun = runsAlone ? sql`true` : sql`NOT ${mustRunAlone}`;
  return claimMessages(deps, sql`t.id = ${id} AND ${mayRun}`, {
    actor,
    limit: 1,
    reroute,
    also: recordStart(recorded),
  });
}

/** If the other transaction has not committed yet, the message still looks retryable: it is only locked. */
async function explainLostClaim(deps: RetryDeps, id: string): Promise<AppError> {
  const now = await deps.findHead(id);
  if (now === null) return messageNotFound(id);
  if (now.isArchived || !isRetryable(now)) return notRetryable(now);
  return conflict(`message is locked by another transaction: ${stateOf(now)}; try again`);
}

/** False without a broker; throws if the message was not published. */
function wasPublished(published: Published | undefined): boolean {
  const result = published?.result ?? null;
  if (published?.error !== undefined) throw published.error;
  if (result === null) {
    if (published?.outcome.end === 'not_published') return false;
    const why = published?.outcome.end === 'released' ? published.outcome.reason : 'the lease was lost';
    throw unavailable(`the message was not sent, and no attempt was used: ${why}`);
  }
  const cost = published?.release === null ? '' : ', and no attempt was used';
  switch (result.result) {
    case 'acked':
      return true;
    case 'failed':
      if (result.retriable && result.fault !== 'topic')
        throw unavailable(`the broker did not accept the message${cost}: ${result.message}`, result.code);
      throw new AppError(
        'SYS_DLQ_PUBLISH_REJECTED',
        'semantic',
        `the broker refused the message${cost}: ${result.code}`,
        { details: [{ field: 'broker', reason: result.code, message: result.message }] },
      );
    case 'unknown':
      throw unavailable('the broker did not answer: the message may have been published', 'in_doubt');
    case 'skipped':
      throw unavailable('the message was blocked by another one, and no attempt was used; try again');
  }
}

function unavailable(message: string, reason = 'not_sent'): AppError {
  return new AppError('SYS_DLQ_BROKER_UNAVAILABLE', 'unavailable', message, {
    details: [{ field: 'broker', reason, message }],
    retryAfterMs: 5000,
  });
}

function conflict(message: string): AppError {
  return new AppError('SYS_DLQ_CONFLICT', 'conflict', message);
}

/** A null value would be a tombstone, which is never what the producer sent. */
function valueless({ sourceTopic }: MessageHead): AppError {
  const why =
    sourceTopic === null
      ? 'it was stored without it'
      : 'it only points to its record; set errors.deadletterqueue.copy.record.enable for the share group';
  return conflict(`message has no value to publish: ${why}`);
}

/** What is left of it is not what was sent. */
function incomplete({ removedParts }: MessageHead): AppError {
  const parts = (removedParts ?? []).filter((part) => part !== 'error').join(' and ');
  return new AppError(
    'SYS_DLQ_REMOVED_AT_INGEST',
    'conflict',
    `message cannot be retried: content of its ${parts} was removed before it was stored (protect.rules, drop_at_ingest); edit it to give the ${parts} again`,
  );
}

function notRetryable(message: MessageHead): AppError {
  return conflict(`message is not retryable: ${stateOf(message)}${message.isArchived ? ', archived' : ''}`);
}

function stateOf({ status, retryCount, maxRetries }: MessageHead): string {
  return `status=${status}, retry_count=${retryCount}/${maxRetries}`;
}

function unroutable(message: MessageHead): AppError {
  const topic = message.sourceTopic ?? message.originalTopic;
  return conflict(
    `message is unroutable: no original topic is known for ${topic}; add a rule to dlq.original_topic_rules`,
  );
}
