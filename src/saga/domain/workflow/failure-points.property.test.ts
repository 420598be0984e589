import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { advanceByOperator } from '../advance-by-operator.ts';
import { advance } from '../advance.ts';
import type { Call, Context, Settlement } from '../settlement.ts';
import { failurePoints, type FailurePoint, type UndoStep } from './failure-points.ts';
import type { Answer, Failure } from '../judge-answer.ts';
import { mapPath } from './mapping.ts';
import { requestAbort } from '../request-abort.ts';
import type { SagaState, Stuck } from '../saga-state.ts';
import { newSaga } from '../../../../tests/support/saga-model/new-saga.ts';
import type { Step, Undo, Workflow } from './workflow.ts';

/** What is promised for a failure point is what the engine then does, decision by decision. */

const by = { actor: 'ann', reason: 'looked' };
const context: Context = { now: 0, random: () => 0.5, serviceOf: () => ({ isIdempotent: true }) };
const none = { isTimeout: false, isUnsent: false };
const refusal: Failure = { class: 'refused', detail: 'no', ...none };
const silence: Failure = { class: 'unknown', detail: 'nobody answered', ...none, isTimeout: true };
const unmade: Failure = { class: 'defect', detail: 'no path', ...none, isUnsent: true };

class Failing {
  readonly #workflow: Workflow;
  readonly #point: FailurePoint;
  #context = context;
  state: SagaState = newSaga(0, null);
  /** Where it first waited for a person. */
  stuck: Stuck | null = null;

  constructor(workflow: Workflow, point: FailurePoint) {
    this.#workflow = workflow;
    this.#point = point;
  }

  run(): void {
    if (this.#point.step === null) this.#abort();
    let decision: Settlement | null = this.#decided({ kind: 'claimed' });
    for (let turn = 0; turn < 1000 && decision !== null; turn += 1) decision = this.#follow(decision);
    assert.equal(decision, null, 'it never ends');
  }

  /** Null at the end, and where only a person could go on. */
  #follow({ state, next }: Settlement): Settlement | null {
    this.state = state;
    switch (next.do) {
      case 'call': {
        this.state = next.opening.state;
        const { step, op, attempt } = next.call;
        return this.#decided({ kind: 'answered', step, op, attempt, answer: this.#answer(next.call) });
      }
      case 'wait':
        this.#context = { ...context, now: next.until };
        return this.#decided({ kind: 'claimed' });
      case 'needs_attention':
        return this.#ask();
      case 'end':
        return null;
      case 'poll':
        return assert.fail('nobody has said that it is working');
    }
  }

  #decided(event: Parameters<typeof advance>[2]): Settlement {
    const decision = advance(this.#workflow, this.state, event, this.#context);
    assert(decision.outcome === 'settle');
    return decision;
  }

  #answer({ step, op, method }: Call): Answer {
    const { steps } = this.#workflow;
    const name = steps[step]?.name ?? '';
    if (op === 'COMPENSATE') {
      const { outputs } = this.state;
      const isMade = mapPath(method, { input: {}, outputs, own: outputs[name] }).ok;
      return isMade ? { class: 'done', output: null } : unmade;
    }
    const { failure, step: failing } = this.#point;
    if (name === failing && failure === 'refused') return refusal;
    if (name === failing && failure === 'in_doubt') return silence;
    if (name === failing) this.#abort();
    return { class: 'done', output: { id: name } };
  }

  #abort(): void {
    const wish = requestAbort(this.state, { kind: 'cancel', by, at: 0 });
    assert(wish.outcome === 'stored');
    this.state = wish.state;
  }

  #ask(): Settlement | null {
    const { stuck } = this.state;
    assert(stuck !== null);
    this.stuck ??= stuck;
    if (this.#point.ends.length === 0) return null;
    this.#context = { ...context, now: this.#context.now + 3_600_000 };
    const outcome = stuck.op === 'EXECUTE' ? 'not_done' : undefined;
    const act = { kind: 'resolve', step: stuck.step, by, outcome } as const;
    const decision = advanceByOperator(this.#workflow, this.state, act, this.#context);
    assert(decision.outcome === 'settle', JSON.stringify(decision));
    return decision;
  }

  /** Each step once, in the order in which its undo began. */
  undone(): readonly string[] {
    const rows = this.state.log.filter(({ op }) => op === 'COMPENSATE');
    const order = [...new Set(rows.map(({ step }) => step))];
    return order.map((step) => {
      const isSkipped = rows.some((row) => row.step === step && row.status === 'SKIPPED');
      return `${isSkipped ? 'skip' : 'undo'} ${this.#workflow.steps[step]?.name}`;
    });
  }
}

const undos = fc.constantFrom<Undo>(
  { kind: 'call', method: 'Some.Undo' },
  { kind: 'call', method: 'DELETE /things/${own.id}' },
  { kind: 'none' },
  { kind: 'absent' },
);

const workflows: fc.Arbitrary<Workflow> = fc
  .record({
    raw: fc.array(fc.record({ undo: undos, maxAttempts: fc.integer({ min: 1, max: 3 }) }), {
      minLength: 1,
      maxLength: 5,
    }),
    pivot: fc.integer({ min: 0, max: 8 }),
  })
  .map(({ raw, pivot }) => ({
    name: 'any',
    deadlineMs: null,
    steps: raw.map(({ undo, maxAttempts }, index): Step => ({
      name: `s${index}`,
      service: 'any',
      method: 'Some.Do',
      undo: index < pivot ? undo : { kind: 'absent' },
      isPivot: index === pivot,
      timeoutMs: 30_000,
      retry: { maxAttempts, backoff: 'fixed', initialIntervalMs: 1000 },
      input: null,
      undoInput: null,
    })),
  }));

const promised = ({ does, step }: UndoStep): string => `${does === 'skip' ? 'skip' : 'undo'} ${step}`;

test('at every failure point the engine undoes what was said, in that order, and asks whom it was said to ask', () => {
  fc.assert(
    fc.property(workflows, (workflow) => {
      for (const point of failurePoints(workflow)) {
        const saga = new Failing(workflow, point);
        saga.run();
        const at = `${point.step} ${point.failure}`;
        assert.deepEqual(saga.undone(), point.undo.map(promised), at);
        const asked = saga.stuck && {
          step: workflow.steps[saga.stuck.step]?.name,
          op: saga.stuck.op === 'EXECUTE' ? 'action' : 'compensate',
        };
        const { person } = point;
        assert.deepEqual(asked, person && { step: person.step, op: person.op }, at);
        if (point.ends.length === 0) assert.equal(saga.state.status, 'RUNNING', at);
        else assert.equal(saga.state.status, point.ends[0], at);
      }
    }),
    { numRuns: 300 },
  );
});
