import { AppError } from '../../kernel/errors.ts';
import type { SoloGate } from '../../kernel/solo-gate.ts';
import { isRetryable, startAttempt, type Status } from '../domain/message.ts';
import { messageNotFound } from './find-message.ts';
import { publishClaimed, type PublishDeps, type Published } from './publish-claimed.ts';
import type { Message, MessageReader, Reroute } from './ports.ts';

export type RetryDeps = PublishDeps &
  Readonly<{
    reader: MessageReader;
    gate: SoloGate;
    /** Where messages of a dead-letter topic go by today's rules. */
    routesOf: (deadLetterTopic: string) => Reroute;
    onAttempt: (outcome: string) => void;
  }>;

export type RetryAnswer = Readonly<{ id: string; status: Status; published: boolean }>;

/**
 * Starts one attempt at one message and sees it through. Two simultaneous retries of a message race for the
 * claim: one wins, the other is told that the message is not retryable now.
 */
export async function retryMessage(deps: RetryDeps, id: string, actor: string): Promise<RetryAnswer> {
  const message = await findRetryable(deps, id);
  const reroute = rerouteOf(deps, message);
  // A null value would be a tombstone to the topic, and never what the producer sent.
  if (deps.publish !== null && message.sourceTopic === null && message.payloadText === null)
    throw new AppError(
      'SYS_DLQ_CONFLICT',
      'conflict',
      'message has no value to publish: it was stored without it',
    );

  const hasKilledItsWorker = message.leaseLost && message.retryCount + 1 >= message.maxRetries;
  const attempt = (): Promise<RetryAnswer> =>
    attemptOnce(deps, { message, actor, reroute, alone: hasKilledItsWorker });
  return hasKilledItsWorker ? deps.gate.alone(attempt) : deps.gate.together(attempt);
}

async function findRetryable(deps: RetryDeps, id: string): Promise<Message> {
  let message = await deps.reader.find(id);
  if (message?.status === 'RETRYING' && !message.leaseIsLive) {
    await deps.store.reap(id);
    message = await deps.reader.find(id);
  }
  if (message === null) throw messageNotFound(id);
  if (message.isArchived || !isRetryable(message)) throw notRetryable(message);
  return message;
}

function rerouteOf(deps: RetryDeps, message: Message): Reroute {
  const routes = deps.routesOf(message.sourceTopic ?? message.originalTopic);
  if (message.unroutable && routes.unroutable === null) throw unroutable(message);
  if (message.unroutable || !deps.isDeadLetterTopic(message.originalTopic))
    return { ...routes, misnamed: null };
  if (routes.misnamed === null) throw unroutable(message);
  return routes;
}

async function attemptOnce(
  deps: RetryDeps,
  {
    message,
    actor,
    reroute,
    alone,
  }: Readonly<{
    message: Message;
    actor: string;
    reroute: Reroute;
    alone: boolean;
  }>,
): Promise<RetryAnswer> {
  const claim = () => deps.store.claimOne({ id: message.id, actor, alone, reroute });
  const first = await claim();
  // One that was written between the claim's snapshot and its lock is left to the next claim, though nobody has it.
  const claimed = first.messages.length > 0 ? first : await claim();
  if (claimed.messages.length === 0) throw await lostTheRace(deps, message.id);
  const published = await publishClaimed(deps, claimed);
  const outcomes = new Map([...published].map(([id, one]) => [id, one.outcome]));
  const settled = await deps.store.settle(claimed.lease, outcomes, actor);
  const one = published.get(message.id);
  deps.onAttempt(one?.outcome.end ?? 'released');
  const status = settled.statuses.get(message.id) ?? 'RETRYING';
  return answerOf(message.id, status, one);
}

async function lostTheRace(deps: RetryDeps, id: string): Promise<AppError> {
  const now = await deps.reader.find(id);
  // The winner may not have committed yet: then the message is named as the winner is making it.
  return now === null ? messageNotFound(id) : notRetryable({ ...now, ...startAttempt(now) });
}

function answerOf(id: string, status: Status, published: Published | undefined): RetryAnswer {
  const result = published?.result ?? null;
  if (result === null) {
    if (published?.outcome.end === 'not_published') return { id, status, published: false };
    throw unavailable('the attempt was given back before it was sent; try again');
  }
  switch (result.result) {
    case 'acked':
      return { id, status, published: true };
    case 'failed':
      if (result.retriable)
        throw unavailable(`the broker did not take the message: ${result.message}`, result.code);
      throw new AppError(
        'SYS_DLQ_PUBLISH_REJECTED',
        'semantic',
        `the broker refused the message: ${result.code}`,
        { details: [{ field: 'broker', reason: result.code, message: result.message }] },
      );
    case 'unknown':
      throw unavailable('the broker did not answer: the message may have been published', 'in_doubt');
    case 'skipped':
      throw unavailable('the message was held back behind another one; try again');
  }
}

function unavailable(message: string, reason = 'not_sent'): AppError {
  return new AppError('SYS_DLQ_BROKER_UNAVAILABLE', 'unavailable', message, {
    details: [{ field: 'broker', reason, message }],
    retryAfterMs: 5000,
  });
}

function notRetryable(message: Message): AppError {
  const state = `status=${message.status}, retry_count=${message.retryCount}/${message.maxRetries}`;
  const archived = message.isArchived ? ', archived' : '';
  return new AppError('SYS_DLQ_CONFLICT', 'conflict', `message is not retryable: ${state}${archived}`);
}

function unroutable(message: Message): AppError {
  const topic = message.sourceTopic ?? message.originalTopic;
  return new AppError(
    'SYS_DLQ_CONFLICT',
    'conflict',
    `message is unroutable: no original topic is known for ${topic}; add a rule to dlq.original_topic_rules`,
  );
}
