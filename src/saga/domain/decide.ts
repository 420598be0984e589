import assert from 'node:assert/strict';
import { latestBeginOf, pollDelayMs, retryDelayMs, WORKING_TIMEOUT_MS } from './call-timing.ts';
import { foldAt } from './fold.ts';
import { logStatusOf, type Answer, type Failure } from './judge-answer.ts';
import { budgetOf, locate, type Place } from './locate.ts';
import {
  isTerminal,
  type Attempt,
  type Op,
  type Polling,
  type SagaState,
  type Status,
} from './saga-state.ts';
import { hasUnknownEnd, isPivotOpened, nextAttempt, openAttempt, replaced } from './step-log.ts';
import type { Step, Workflow } from './workflow.ts';

/**
 * What the engine can see happen to a saga. `claimed`: it was due, and nobody else has it. `worker_lost`: the lease
 * of whoever had it ran out. `given_up`: it has come to nothing too often, for this reason, and nothing is called
 * again before a person has looked. An abort and the deadline are no events: they are part of what is known of the
 * saga, and every decision heeds them.
 */
export type EngineEvent =
  | Readonly<{ kind: 'claimed' }>
  | Readonly<{ kind: 'worker_lost' }>
  | Readonly<{ kind: 'given_up'; reason: string }>
  | Readonly<{ kind: 'answered'; step: number; op: Op; attempt: number; answer: Answer }>;

/** What a decision needs beside the saga itself. */
export type Circumstances = Readonly<{
  /** On the database's clock. */
  now: number;
  random: () => number;
  /** Undefined where the configuration has no such service. */
  serviceOf: (name: string) => Readonly<{ isIdempotent: boolean }> | undefined;
}>;

export type Published = `SAGA_${Status | 'COMPENSATION_STUCK' | 'STUCK'}`;

export type Call = Readonly<{
  step: number;
  op: Op;
  attempt: number;
  service: string;
  method: string;
  timeoutMs: number;
  /** The header `saga-deadline`. */
  latestBegin: number;
}>;

/**
 * What follows. A `call` is sent after its row is stored: in the same settle, with `opening` in place of the
 * decision's own state, or, where no slot is free, after a later claim, which comes to the same call. A `poll` sends
 * the open attempt's request again and stores nothing before.
 */
export type Next =
  | Readonly<{ do: 'call'; call: Call; opening: Opening }>
  | Readonly<{ do: 'poll'; call: Call }>
  | Readonly<{ do: 'wait'; until: number }>
  | Readonly<{ do: 'ask_person' }>
  | Readonly<{ do: 'end' }>;

export type Opening = Readonly<{ state: SagaState; attempt: Attempt; events: readonly Published[] }>;

/** What a settle writes, all of it or nothing: the state, its log rows and its events; and what comes after it. */
export type Settlement = Readonly<{
  outcome: 'settle';
  state: SagaState;
  /** Rows that were there: now closed, or marked as tried again. */
  changed: readonly Attempt[];
  /** Rows that are written closed, because no call belongs to them. */
  added: readonly Attempt[];
  events: readonly Published[];
  next: Next;
}>;

/** `stale`: the event belongs to a state that is gone; nothing is written. */
export type Decision = Settlement | Readonly<{ outcome: 'stale' }>;

const STALE: Decision = { outcome: 'stale' };

/** What follows from an event of the engine. Total: it has an answer to every event in every state. */
export function decide(
  workflow: Workflow,
  state: SagaState,
  event: EngineEvent,
  around: Circumstances,
): Decision {
  if (isTerminal(state.status) || state.stuck !== null) return STALE;
  const open = openAttempt(state.log);
  const saga: Saga = { workflow, state, around };
  switch (event.kind) {
    case 'claimed':
      if (open === undefined) return settle(saga, state.log);
      return state.polling === null ? close(saga, open, WORKER_LOST) : decidePoll(saga, open, state.polling);
    case 'worker_lost':
      return open === undefined ? settle(saga, state.log) : close(saga, open, WORKER_LOST);
    case 'given_up': {
      const givenUp = { ...saga, whyNoCall: event.reason };
      return open === undefined ? settle(givenUp, state.log) : close(givenUp, open, WORKER_LOST);
    }
    case 'answered': {
      const isOwn = open?.step === event.step && open.op === event.op && open.attempt === event.attempt;
      return isOwn ? decideAnswer(saga, open, event.answer) : STALE;
    }
  }
}

type Saga = Readonly<{
  workflow: Workflow;
  state: SagaState;
  around: Circumstances;
  /** Where nothing is to be called, whatever is next. */
  whyNoCall?: string;
}>;

const WORKER_LOST = unknown('worker lost');

/** The end of an attempt of which nobody knows what has become. */
function unknown(detail: string): Failure {
  return { class: 'unknown', detail, isTimeout: true, isUnsent: false };
}

/** A poll is due. */
function decidePoll(saga: Saga, open: Attempt, polling: Polling): Decision {
  const over = pollingOver(saga, open);
  if (over !== null) return close(saga, open, unknown(over));
  const { workflow, state, around } = saga;
  const call = callOf(workflow, state, open);
  if (around.serviceOf(call.service) === undefined)
    return close(saga, open, unknown(`the service ${call.service} is not configured`));
  const next: Next = { do: 'poll', call };
  const until = { polling, wakeAt: around.now };
  return { outcome: 'settle', state: { ...state, ...until }, changed: [], added: [], events: [], next };
}

function decideAnswer(saga: Saga, open: Attempt, answer: Answer): Decision {
  const { polling, log } = saga.state;
  if (answer.class === 'done' || answer.class === 'refused') return close(saga, open, answer);
  if (answer.class !== 'working' && polling === null) return close(saga, open, answer);
  const over = pollingOver(saga, open);
  if (over !== null) return close(saga, open, unknown(over));
  if (answer.class === 'working' || polling === null)
    return pollAgain(saga, open, { polls: (polling?.polls ?? 0) + 1, failedPolls: 0 }, answer);
  const failedPolls = polling.failedPolls + 1;
  if (failedPolls < budgetOf(saga.workflow, log, open.step, open.op))
    return pollAgain(saga, open, { ...polling, failedPolls }, answer);
  // It has begun. A poll that was not sent, or not understood, says nothing about that.
  return close(saga, open, { ...unknown(`polling failed: ${answer.detail}`), isTimeout: answer.isTimeout });
}

/** Why an attempt that is answered `working` is waited for no longer. */
function pollingOver({ workflow, state, around }: Saga, open: Attempt): string | null {
  const isAborted = state.abort !== null || state.isDeadlineOver;
  if (open.op === 'EXECUTE' && isAborted && !isPivotOpened(workflow, state.log))
    return 'still working when the saga was aborted';
  return around.now >= open.startedAt + WORKING_TIMEOUT_MS ? 'still working when its time was over' : null;
}

function pollAgain(
  { workflow, state, around }: Saga,
  open: Attempt,
  polling: Polling,
  asked: Readonly<{ retryAfterMs?: number | undefined }>,
): Decision {
  const delay = pollDelayMs(polling, { retryAfterMs: asked.retryAfterMs, random: around.random });
  const until = Math.min(around.now + delay, open.startedAt + WORKING_TIMEOUT_MS);
  const next = waitUntil(workflow, state, until);
  const after = { ...state, polling, wakeAt: next.until };
  return { outcome: 'settle', state: after, changed: [], added: [], events: [], next };
}

function close(saga: Saga, open: Attempt, answer: Exclude<Answer, { class: 'working' }>): Decision {
  const { workflow, state, around } = saga;
  const isDone = answer.class === 'done';
  const service = around.serviceOf(workflow.steps[open.step]?.service ?? '');
  const closed: Attempt = {
    ...open,
    status: logStatusOf(answer),
    answer: answer.class,
    isUnsent: !isDone && answer.isUnsent,
    isLast: answer.class === 'unknown' && !answer.isUnsent && service?.isIdempotent === false,
    output: isDone ? answer.output : null,
    error: isDone ? null : answer.detail,
  };
  return settle(saga, replaced(state.log, closed), {
    failed: closed,
    retryAfterMs: isDone ? undefined : answer.retryAfterMs,
  });
}

/** Whether a call may follow at once: not after the attempt that has just failed, nor from the hands of a person. */
type Pause = Readonly<{ failed: Attempt; retryAfterMs: number | undefined }> | 'until claimed';

/** Brings the state in line with a changed log, writes the rows that need no call, and finds what comes next. */
export function settle(saga: Saga, changedLog: SagaState['log'], pause?: Pause): Settlement {
  const { workflow, state, around } = saga;
  let log = changedLog;
  let place = locate(workflow, state, log);
  for (;;) {
    const further = withoutCall(saga, log, place.what, pause);
    if (further === null) break;
    log = further;
    place = locate(workflow, state, log);
  }
  const known = { ...state, ...foldAt(place, workflow, state, log), log, polling: null };
  const next = nextOf({ workflow, state: known, around }, place, pause);
  return {
    outcome: 'settle',
    state: { ...known, wakeAt: wakeOf(next, around.now) },
    changed: log.filter((row, index) => index < state.log.length && row !== state.log[index]),
    added: log.slice(state.log.length),
    events: eventsBetween(state, known),
    next,
  };
}

/** The log with what is next written down, where no call belongs to it; else null. */
function withoutCall(
  { workflow, around, whyNoCall }: Saga,
  log: SagaState['log'],
  what: Place['what'],
  pause: Pause | undefined,
): SagaState['log'] | null {
  if (what.at === 'skip') {
    const row = nextAttempt(log, what.step, 'COMPENSATE', around.now);
    return [...log, { ...row, status: 'SKIPPED', isUnsent: true }];
  }
  if (what.at !== 'call') return null;
  const { step, op, last } = what;
  if (whyNoCall !== undefined) return [...log, unserved(nextAttempt(log, step, op, around.now), whyNoCall)];
  if (pauseOf(what, pause) !== null) return null;
  const { service: name = '' } = workflow.steps[step] ?? {};
  const service = around.serviceOf(name);
  if (service === undefined) {
    const error = `the service ${name} is not configured`;
    return [...log, unserved(nextAttempt(log, step, op, around.now), error)];
  }
  // The configuration may have changed since the attempt was closed.
  if (service.isIdempotent || last === null || last.isLast || !hasUnknownEnd(log, step, op)) return null;
  return replaced(log, { ...last, isLast: true });
}

/** What cannot be called is a failure without a call. */
function unserved(row: Attempt, error: string): Attempt {
  return { ...row, status: 'FAILED', answer: 'unserved', isUnsent: true, error };
}

function pauseOf({ last }: Readonly<{ last: Attempt | null }>, pause: Pause | undefined): Pause | null {
  return pause === 'until claimed' || (pause !== undefined && last === pause.failed) ? pause : null;
}

function nextOf({ workflow, state, around }: Saga, { what }: Place, pause: Pause | undefined): Next {
  if (what.at === 'end') return { do: 'end' };
  if (what.at === 'stuck') return { do: 'ask_person' };
  assert(what.at === 'call', `a settled saga is never ${what.at}`);
  const paused = pauseOf(what, pause);
  if (paused === 'until claimed') return waitUntil(workflow, state, around.now);
  if (paused !== null) {
    const asked = { retryAfterMs: paused.retryAfterMs, random: around.random };
    return waitUntil(workflow, state, around.now + retryDelayMs(workflow, state.log, what, asked));
  }
  const attempt = nextAttempt(state.log, what.step, what.op, around.now);
  const log = [...state.log, attempt];
  const place: Place = { cause: state.errorMessage, what: { at: 'in_flight', attempt } };
  const opened = { ...state, ...foldAt(place, workflow, state, log), log, wakeAt: null };
  const opening = { state: opened, attempt, events: eventsBetween(state, opened) };
  return { do: 'call', call: callOf(workflow, opened, attempt), opening };
}

/** What still can be aborted wakes at its deadline at the latest. */
function waitUntil(
  workflow: Workflow,
  { deadlineAt, log, errorMessage }: SagaState,
  until: number,
): Readonly<{ do: 'wait'; until: number }> {
  const isBounded = deadlineAt !== null && errorMessage === null && !isPivotOpened(workflow, log);
  return { do: 'wait', until: isBounded ? Math.min(until, deadlineAt) : until };
}

/** Of a call, when it could not be opened at once. */
function wakeOf(next: Next, now: number): number | null {
  if (next.do === 'wait') return next.until;
  return next.do === 'call' ? now : null;
}

function callOf(workflow: Workflow, state: SagaState, { step, op, attempt, ...row }: Attempt): Call {
  const { service, method, undo, timeoutMs } = workflow.steps[step] as Step;
  return {
    step,
    op,
    attempt,
    service,
    method: op === 'COMPENSATE' && undo.kind === 'call' ? undo.method : method,
    timeoutMs,
    latestBegin: latestBeginOf(workflow, state, { step, op, attempt, ...row }),
  };
}

/** Each status on the way is told, also where one settle goes through two of them. */
function eventsBetween(before: SagaState, after: SagaState): readonly Published[] {
  const events: Published[] = [];
  const isNew = after.status !== before.status;
  const isUndoing = after.status === 'FAILED' || after.status === 'CANCELLED';
  if (isNew && isUndoing && before.status === 'RUNNING') events.push('SAGA_COMPENSATING');
  if (isNew) events.push(`SAGA_${after.status}`);
  const { stuck } = after;
  if (stuck !== null && (stuck.step !== before.stuck?.step || stuck.op !== before.stuck.op))
    events.push(stuck.op === 'EXECUTE' ? 'SAGA_STUCK' : 'SAGA_COMPENSATION_STUCK');
  return events;
}
