import assert from 'node:assert/strict';
import { advance, type EngineEvent } from '../../../src/saga/domain/advance.ts';
import type { Context, Settlement } from '../../../src/saga/domain/settlement.ts';
import { judgeCallError, type Answer, type Failure } from '../../../src/saga/domain/judge-answer.ts';
import { requestAbort } from '../../../src/saga/domain/request-abort.ts';
import type { SagaState } from '../../../src/saga/domain/saga-state.ts';
import { newSaga } from './new-saga.ts';
import type { Step, Workflow } from '../../../src/saga/domain/workflow/workflow.ts';

const by = { actor: 'ann', reason: 'wrong order' };

export function step(name: string, changes: Partial<Step> = {}): Step {
  return {
    name,
    service: name,
    method: `${name}.Do`,
    undo: { kind: 'call', method: `${name}.Undo` },
    isPivot: false,
    timeoutMs: 30_000,
    retry: { maxAttempts: 3, backoff: 'exponential', initialIntervalMs: 1000 },
    input: null,
    undoInput: null,
    ...changes,
  };
}

export function workflowOf(...steps: readonly Step[]): Workflow {
  return { name: 'order', deadlineMs: null, steps };
}

export const two = workflowOf(step('reserve'), step('pay'));
export const behindPivot = workflowOf(
  step('a'),
  step('pivot', { undo: { kind: 'absent' }, isPivot: true }),
  step('after', { undo: { kind: 'absent' } }),
);
export const done: Answer = { class: 'done', output: { id: 7 } };
export const refused: Failure = { class: 'refused', detail: 'HTTP 409', isTimeout: false, isUnsent: false };
export const silence: Failure = { class: 'unknown', detail: 'no answer', isTimeout: true, isUnsent: false };
export const unsent = judgeCallError(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }));

/** Drives one saga by hand: time stands still unless it is moved, and waits are in the middle of their spread. */
export class Driven {
  state: SagaState;
  now = 0;
  readonly services: Context['serviceOf'];
  readonly workflow: Workflow;
  readonly events: string[] = [];

  constructor(workflow: Workflow, services: Context['serviceOf'] = () => ({ isIdempotent: true })) {
    this.workflow = workflow;
    this.services = services;
    this.state = newSaga(0, workflow.deadlineMs);
  }

  on(event: EngineEvent): Settlement {
    const context = { now: this.now, random: () => 0.5, serviceOf: this.services };
    const decision = advance(this.workflow, this.state, event, context);
    assert.ok(decision.outcome === 'settle', 'the event is stale');
    const { next } = decision;
    this.state = next.do === 'call' ? next.opening.state : decision.state;
    this.events.push(...decision.events, ...(next.do === 'call' ? next.opening.events : []));
    return decision;
  }

  claim(): string {
    this.now = Math.max(this.now, this.state.wakeAt ?? this.now);
    return this.#say(this.on({ kind: 'claimed' }));
  }

  answer(answer: Answer): string {
    const open = this.state.log.find(({ status }) => status === null);
    assert.ok(open);
    const { step: index, op, attempt } = open;
    return this.#say(this.on({ kind: 'answered', step: index, op, attempt, answer }));
  }

  abort(kind: 'cancel' | 'compensate'): string {
    const asked = requestAbort(this.state, { kind, by, at: this.now });
    if (asked.outcome === 'stored') this.state = asked.state;
    return asked.outcome;
  }

  #say({ next }: Settlement): string {
    switch (next.do) {
      case 'call':
        return `${next.call.method} #${next.call.attempt}`;
      case 'poll':
        return `poll ${next.call.method} #${next.call.attempt}`;
      case 'wait':
        return `wait ${next.until - this.now}`;
      case 'needs_attention':
        return `ask: ${this.state.stuck?.op} ${this.state.stuck?.step}`;
      case 'end':
        return this.state.status;
    }
  }
}

export function openOf({ log }: SagaState) {
  const { step: index, op, attempt } = log.at(-1) ?? assert.fail();
  return { step: index, op, attempt };
}
