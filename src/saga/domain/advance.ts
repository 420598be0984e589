import { budgetOf } from './budget.ts';
import { chargeOf, pollDelayMs, WORKING_TIMEOUT_MS } from './call-timing.ts';
import { interpretAnswer, pollOf } from './interpret-answer.ts';
import { logStatusOf, type Answer, type Failure } from './judge-answer.ts';
import { isTerminal, type Attempt, type Op, type Polling, type Waiting } from './saga-state.ts';
import {
  pollCallOf,
  settlementOf,
  waitUntil,
  type Context,
  type Next,
  type Saga,
  type Settlement,
} from './settlement.ts';
import { isPivotOpened, openAttempt, replaced } from './step-log.ts';
import { recheckAt, serviceWait } from './wait-for-service.ts';
import type { SagaState } from './saga-state.ts';
import type { Workflow } from './workflow/workflow.ts';

/**
 * The events that advance a saga. `claimed`: it was due. `worker_lost`: the lease of its last worker expired.
 * `given_up`: too many rounds failed in a row, for this reason, so nothing is called until an operator has looked.
 * `answered`: the call of the open attempt ended; `isProbe` if it tested whether a service with an open circuit is back.
 * An abort and the deadline are no events: they are part of the saga's state, and every transition respects them.
 */
export type EngineEvent =
  | Readonly<{ kind: 'claimed' }>
  | Readonly<{ kind: 'worker_lost' }>
  | Readonly<{ kind: 'given_up'; reason: string }>
  | Readonly<{
      kind: 'answered';
      step: number;
      op: Op;
      attempt: number;
      answer: Answer;
      isProbe?: boolean;
    }>;

/** `stale`: the event belongs to an earlier state; nothing is written. */
export type Advance = Settlement | Readonly<{ outcome: 'stale' }>;

const STALE: Advance = { outcome: 'stale' };

/** The transition that an event causes. Total: defined for every event in every state. */
export function advance(workflow: Workflow, state: SagaState, event: EngineEvent, context: Context): Advance {
  if (isTerminal(state.status) || state.stuck !== null) return STALE;
  const open = openAttempt(state.log);
  const saga: Saga = { workflow, state, context };
  switch (event.kind) {
    case 'claimed':
      if (open === undefined) return settlementOf(saga, state.log);
      return state.polling === null ? close(saga, open, WORKER_LOST) : poll(saga, open, state.polling);
    case 'worker_lost':
      return open === undefined ? settlementOf(saga, state.log) : close(saga, open, WORKER_LOST);
    case 'given_up': {
      const givenUp = { ...saga, noCallReason: event.reason };
      return open === undefined ? settlementOf(givenUp, state.log) : close(givenUp, open, WORKER_LOST);
    }
    case 'answered': {
      const isOwn = open?.step === event.step && open.op === event.op && open.attempt === event.attempt;
      if (!isOwn) return STALE;
      const { isProbe = false } = event;
      return applyAnswer({ ...saga, isProbe }, open, interpretAnswer(saga, open, event.answer));
    }
  }
}

/** Failed polls in a row if the budget is a time; after that the call itself is repeated. */
const MAX_FAILED_POLLS = 10;

const WORKER_LOST = unknown('worker lost');

/** An attempt whose effect is not known. */
function unknown(detail: string): Failure {
  return { class: 'unknown', detail, isTimeout: true, isUnsent: false };
}

/** A poll is due. */
function poll(saga: Saga, open: Attempt, polling: Polling): Advance {
  const expired = pollingExpired(saga, open);
  if (expired !== null) return close(saga, open, unknown(expired));
  const { workflow, state, context } = saga;
  const call = pollCallOf(workflow, state, open);
  if (context.serviceOf(call.service) === undefined)
    return close(saga, open, unknown(`the service ${call.service} is not configured`));
  const waiting = serviceWait(saga, state.log, state.errorMessage, call.service);
  if (waiting !== null) return postponePoll(saga, open, waiting);
  const next: Next = { do: 'poll', call };
  const until = { polling, waiting: null, wakeAt: context.now };
  return { outcome: 'settle', state: { ...state, ...until }, changed: [], added: [], events: [], next };
}

/** The service is down. */
function postponePoll({ workflow, state, context }: Saga, open: Attempt, waiting: Waiting): Advance {
  const until = Math.min(recheckAt(context), open.startedAt + WORKING_TIMEOUT_MS);
  const next = { ...waitUntil(workflow, state, until), waiting };
  const after = { ...state, waiting, wakeAt: next.until };
  return { outcome: 'settle', state: after, changed: [], added: [], events: [], next };
}

function applyAnswer(saga: Saga, open: Attempt, answer: Answer): Advance {
  const { polling } = saga.state;
  if (answer.class === 'done') return close(saga, open, answer);
  if (answer.class !== 'working' && (polling === null || answer.isFinal === true))
    return close(saga, open, answer);
  const expired = pollingExpired(saga, open);
  if (expired !== null) return close(saga, open, unknown(expired));
  return answer.class === 'working' ? keepPolling(saga, open, answer) : failPoll(saga, open, answer);
}

/** The body of the first 202 is stored: a poll that its step names refers to it. */
function keepPolling(saga: Saga, open: Attempt, answer: Extract<Answer, { class: 'working' }>): Advance {
  const { workflow, state } = saga;
  const polling = { polls: (state.polling?.polls ?? 0) + 1, failedPolls: 0 };
  const again = pollAgain(saga, open, polling, answer);
  if (state.polling !== null || answer.output === undefined || pollOf(workflow, open) === null) return again;
  const accepted = { ...open, output: answer.output };
  return { ...again, state: { ...again.state, log: replaced(state.log, accepted) }, changed: [accepted] };
}

function failPoll(saga: Saga, open: Attempt, answer: Failure): Advance {
  const { polls = 0, failedPolls = 0 } = saga.state.polling ?? {};
  const failed = { polls, failedPolls: saga.isProbe === true ? failedPolls : failedPolls + 1 };
  if (failed.failedPolls < maxFailedPolls(saga, open)) return pollAgain(saga, open, failed, answer);
  // The action has begun: a poll that was not sent or not understood does not say how it ended.
  return close(saga, open, { ...unknown(`polling failed: ${answer.detail}`), isTimeout: answer.isTimeout });
}

function maxFailedPolls({ workflow, state }: Saga, { step, op }: Attempt): number {
  const budget = budgetOf(workflow, state.log, step, op);
  return budget.kind === 'attempts' ? budget.most : MAX_FAILED_POLLS;
}

/** Why an attempt that was answered `working` is no longer polled. */
function pollingExpired({ workflow, state, context }: Saga, open: Attempt): string | null {
  const isAborted = state.abort !== null || state.isDeadlineOver;
  if (open.op === 'EXECUTE' && isAborted && !isPivotOpened(workflow, state.log))
    return 'still working when the saga was aborted';
  return context.now >= open.startedAt + WORKING_TIMEOUT_MS ? 'still working when its time was over' : null;
}

function pollAgain(
  { workflow, state, context }: Saga,
  open: Attempt,
  polling: Polling,
  asked: Readonly<{ retryAfterMs?: number | undefined }>,
): Settlement {
  const delay = pollDelayMs(polling, { retryAfterMs: asked.retryAfterMs, random: context.random });
  const until = Math.min(context.now + delay, open.startedAt + WORKING_TIMEOUT_MS);
  const next = waitUntil(workflow, state, until);
  const after = { ...state, polling, waiting: null, wakeAt: next.until };
  return { outcome: 'settle', state: after, changed: [], added: [], events: [], next };
}

/** Closes the open attempt and charges it to its step's budget. */
function close(saga: Saga, open: Attempt, answer: Exclude<Answer, { class: 'working' }>): Advance {
  const { workflow, state, context } = saga;
  const isDone = answer.class === 'done';
  const service = context.serviceOf(workflow.steps[open.step]?.service ?? '');
  const closed: Attempt = {
    ...open,
    status: logStatusOf(answer),
    answer: answer.class,
    isUnsent: !isDone && answer.isUnsent,
    isLast: isLastCall(answer, service?.isIdempotent !== false),
    isDown: !isDone && answer.isDown === true,
    output: isDone ? answer.output : null,
    error: isDone ? (answer.note ?? null) : answer.detail,
  };
  if (isDone || answer.class !== 'unknown') return settlementOf(saga, replaced(state.log, closed));
  const { now, random, isDown } = context;
  const isKnownDown = isDown?.(workflow.steps[open.step]?.service ?? '') === true;
  const asked = { retryAfterMs: answer.retryAfterMs, random, now, isDown: isKnownDown };
  const { spentMs, waitMs } = chargeOf(workflow, state, closed, asked);
  const failed = { ...closed, spentMs: saga.isProbe === true ? 0 : spentMs };
  return settlementOf(saga, replaced(state.log, failed), { failed, waitMs });
}

function isLastCall(answer: Exclude<Answer, { class: 'working' }>, isIdempotent: boolean): boolean {
  return answer.class === 'unknown' && !answer.isUnsent && (!isIdempotent || answer.isFinal === true);
}
