import assert from 'node:assert/strict';
import { maxServiceWaitMs } from './budget.ts';
import { latestBeginOf } from './call-timing.ts';
import { foldAt } from './fold.ts';
import { pollOf } from './interpret-answer.ts';
import { locate, type Position } from './locate.ts';
import type { Attempt, Op, SagaState, Status, Waiting } from './saga-state.ts';
import { hasUnknownEnd, isPivotOpened, nextAttempt, replaced } from './step-log.ts';
import { recheckAt, serviceWait, unavailable } from './wait-for-service.ts';
import type { Step, Workflow } from './workflow/workflow.ts';

/** What a transition depends on besides the saga itself. */
export type Context = Readonly<{
  /** On the database's clock. */
  now: number;
  random: () => number;
  /** Undefined if the service is not configured. */
  serviceOf: (name: string) => Readonly<{ isIdempotent: boolean }> | undefined;
  /** Whether the service's circuit is open and this saga is not its probe. */
  isDown?: (service: string) => boolean;
}>;

/** A saga and the context in which it advances. */
export type Saga = Readonly<{
  workflow: Workflow;
  state: SagaState;
  context: Context;
  /** If set, nothing is called: the next call is recorded as failed for this reason. */
  noCallReason?: string;
  /** The answer is that of a probe, which costs no budget. */
  isProbe?: boolean;
}>;

export type Published = `SAGA_${Status | 'COMPENSATION_STUCK' | 'STUCK'}`;

export type Call = Readonly<{
  step: number;
  op: Op;
  attempt: number;
  service: string;
  method: string;
  timeoutMs: number;
  /** Sent as the header `saga-deadline`. */
  latestBegin: number;
  /** Only for a poll that its step names: the body of the 202, referred to as `own`. Such a poll sends no input. */
  asksFor?: unknown;
}>;

/**
 * What the engine does after the settle. A `call` is sent only after its open row is stored: in the same settle, with
 * `opening` instead of the settlement's own state, or, if no call permit is free, after a later claim, which arrives at
 * the same call. A `poll` repeats the request of the open attempt and stores nothing beforehand.
 */
export type Next =
  | Readonly<{ do: 'call'; call: Call; opening: Opening }>
  | Readonly<{ do: 'poll'; call: Call }>
  | Wait
  | Readonly<{ do: 'needs_attention' }>
  | Readonly<{ do: 'end' }>;

/** Until a time, or, with `waiting`, until the service is back, but not longer than that. */
export type Wait = Readonly<{ do: 'wait'; until: number; waiting?: Waiting }>;

export type Opening = Readonly<{ state: SagaState; attempt: Attempt; events: readonly Published[] }>;

/** What one settle writes atomically (state, log rows, events), and what follows it. */
export type Settlement = Readonly<{
  outcome: 'settle';
  state: SagaState;
  /** Existing rows that were closed, or marked as retried. */
  changed: readonly Attempt[];
  /** Rows that are inserted closed, because they involve no call. */
  added: readonly Attempt[];
  events: readonly Published[];
  next: Next;
}>;

/**
 * Why no call follows at once: the attempt that just failed backs off, or an operator acted, and the next claim makes
 * the call.
 */
export type Pause = Readonly<{ failed: Attempt; waitMs: number }> | 'until claimed';

/** Derives the state from the changed log, adds the rows that need no call, and finds out what comes next. */
export function settlementOf(saga: Saga, changedLog: SagaState['log'], pause?: Pause): Settlement {
  const { workflow, state, context } = saga;
  let log = changedLog;
  let position = locate(workflow, state, log);
  for (;;) {
    const longer = recordWithoutCall(saga, log, position, pause);
    if (longer === null) break;
    log = longer;
    position = locate(workflow, state, log);
  }
  const known = { ...state, ...foldAt(position, workflow, state, log), log, polling: null, waiting: null };
  const next = nextOf(saga, known, position, pause);
  const waiting = next.do === 'wait' ? (next.waiting ?? null) : null;
  return {
    outcome: 'settle',
    state: { ...known, waiting, wakeAt: wakeOf(next, context.now) },
    changed: log.filter((row, index) => index < state.log.length && row !== state.log[index]),
    added: log.slice(state.log.length),
    events: eventsBetween(state, known),
    next,
  };
}

/** The log with one more row (or a changed one) if the next thing to do needs no call; null if it does. */
function recordWithoutCall(
  saga: Saga,
  log: SagaState['log'],
  { cause, what }: Position,
  pause: Pause | undefined,
): SagaState['log'] | null {
  const { workflow, context, noCallReason } = saga;
  const { now } = context;
  if (what.at === 'skip') {
    const row = nextAttempt(log, what.step, 'COMPENSATE', now);
    return [...log, { ...row, status: 'SKIPPED', isUnsent: true }];
  }
  if (what.at !== 'call') return null;
  const { step, op, last } = what;
  if (noCallReason !== undefined) return [...log, unserved(nextAttempt(log, step, op, now), noCallReason)];
  if (pauseOf(what, pause) !== null) return null;
  const { service: name = '' } = workflow.steps[step] ?? {};
  const service = context.serviceOf(name);
  if (service === undefined) {
    const error = `the service ${name} is not configured`;
    return [...log, unserved(nextAttempt(log, step, op, now), error)];
  }
  const waiting = serviceWait(saga, log, cause, name);
  if (waiting !== null && now - waiting.since >= maxServiceWaitMs(workflow, log, step, op))
    return [...log, unavailable(nextAttempt(log, step, op, now), waiting, now)];
  // The service may have been reconfigured as not idempotent since the attempt was closed.
  if (service.isIdempotent || last === null || last.isLast || !hasUnknownEnd(log, step, op)) return null;
  return replaced(log, { ...last, isLast: true });
}

/** A failed attempt without a call. */
function unserved(row: Attempt, error: string): Attempt {
  return { ...row, status: 'FAILED', answer: 'unserved', isUnsent: true, error };
}

function pauseOf({ last }: Readonly<{ last: Attempt | null }>, pause: Pause | undefined): Pause | null {
  return pause === 'until claimed' || (pause !== undefined && last === pause.failed) ? pause : null;
}

function nextOf(saga: Saga, state: SagaState, { cause, what }: Position, pause: Pause | undefined): Next {
  const { workflow, context } = saga;
  if (what.at === 'end') return { do: 'end' };
  if (what.at === 'stuck') return { do: 'needs_attention' };
  assert(what.at === 'call', `a settled saga is never ${what.at}`);
  const paused = pauseOf(what, pause);
  if (paused === 'until claimed') return waitUntil(workflow, state, context.now);
  const service = workflow.steps[what.step]?.service;
  const waiting = serviceWait(saga, state.log, cause, service ?? '');
  if (waiting !== null) {
    const endsAt = waiting.since + maxServiceWaitMs(workflow, state.log, what.step, what.op);
    return { ...waitUntil(workflow, state, Math.min(recheckAt(context), endsAt)), waiting };
  }
  if (paused !== null) return waitUntil(workflow, state, context.now + paused.waitMs);
  const attempt = nextAttempt(state.log, what.step, what.op, context.now);
  const log = [...state.log, attempt];
  const position: Position = { cause: state.errorMessage, what: { at: 'in_flight', attempt } };
  // If this call is a probe and fails, the wait that it interrupts continues.
  const { waiting: waited } = saga.state;
  const kept = waited !== null && waited.service === service ? waited : null;
  const opened = { ...state, ...foldAt(position, workflow, state, log), log, waiting: kept, wakeAt: null };
  const opening = { state: opened, attempt, events: eventsBetween(state, opened) };
  return { do: 'call', call: callOf(workflow, opened, attempt), opening };
}

/** A saga that can still be aborted wakes at its deadline at the latest. */
export function waitUntil(
  workflow: Workflow,
  { deadlineAt, log, errorMessage }: SagaState,
  until: number,
): Wait {
  const isBounded = deadlineAt !== null && errorMessage === null && !isPivotOpened(workflow, log);
  return { do: 'wait', until: isBounded ? Math.min(until, deadlineAt) : until };
}

/** A call that could not be opened at once is due immediately. */
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

export function pollCallOf(workflow: Workflow, state: SagaState, open: Attempt): Call {
  const call = callOf(workflow, state, open);
  const poll = pollOf(workflow, open);
  return poll === null ? call : { ...call, method: poll, asksFor: open.output };
}

/** Publishes every status on the way, also if one settle passes through two of them. */
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
