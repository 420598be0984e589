import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { GuardedParticipant, type Handling } from '../../../tests/support/saga-model/guarded-participant.ts';
import { Simulation, type Scenario } from '../../../tests/support/saga-model/saga-simulation.ts';
import type { Step, Undo, Workflow } from './workflow/workflow.ts';

const undos = fc.constantFrom<Undo>(
  { kind: 'call', method: 'Some.Undo' },
  { kind: 'call', method: 'Some.Undo' },
  { kind: 'none' },
  { kind: 'absent' },
);

const rawSteps = fc.array(
  fc.record({
    undo: undos,
    service: fc.constantFrom('inventory', 'billing', 'shipping'),
    maxAttempts: fc.integer({ min: 1, max: 4 }),
    backoff: fc.constantFrom('exponential' as const, 'fixed' as const),
    needsFirst: fc.boolean(),
    undoForMs: fc.constantFrom(undefined, 1, 30_000, 600_000),
    waitForServiceMs: fc.constantFrom(undefined, 1000, 60_000),
  }),
  { minLength: 1, maxLength: 6 },
);

const workflows: fc.Arbitrary<Workflow> = fc
  .record({
    raw: rawSteps,
    pivot: fc.option(fc.nat(5), { nil: 99 }),
    deadlineMs: fc.option(fc.constantFrom(2000, 120_000, 1_800_000)),
  })
  .map(({ raw, pivot, deadlineMs }) => ({
    name: 'any',
    deadlineMs,
    steps: raw.map(({ undo, service, maxAttempts, backoff, needsFirst, ...times }, index): Step => {
      const isBehind = index >= pivot;
      return {
        name: `s${index}`,
        service,
        method: 'Some.Do',
        undo: isBehind && (undo.kind === 'call' || index === pivot) ? { kind: 'absent' } : undo,
        isPivot: index === pivot,
        timeoutMs: 30_000,
        retry: { maxAttempts, backoff, initialIntervalMs: 1000 },
        input: needsFirst && index > 0 ? { id: '${steps.s0.id}' } : null,
        undoInput: null,
        ...times,
      };
    }),
  }));

/** From a bad day to one on which little happens: a zero is the kindest choice. */
const choices = fc.constantFrom(1, 3, 10, 30).chain((kind) =>
  fc.array(fc.oneof({ weight: kind, arbitrary: fc.constant(0) }, { weight: 3, arbitrary: fc.nat(5039) }), {
    maxLength: 300,
    size: 'max',
  }),
);

const calls = Array.from({ length: 6 }, (_, step) => [`${step} EXECUTE`, `${step} COMPENSATE`]).flat();

const scenarios: fc.Arbitrary<Scenario> = fc.record({
  workflow: workflows,
  fragile: fc.subarray(['billing', 'shipping']).map((names) => new Set(names)),
  bare: fc.subarray([0, 1, 2, 3, 4, 5]).map((steps) => new Set(steps)),
  silent: fc.subarray(calls, { maxLength: 2 }).map((names) => new Set(names)),
  choices,
});

/** A pivot whose last counted attempt ends in doubt after an hour: from then on its budget is a time, and long spent. */
const lateDoubt: Scenario = {
  workflow: {
    name: 'any',
    deadlineMs: null,
    steps: [2, 1].map((maxAttempts, index) => ({
      name: `s${index}`,
      service: 'inventory',
      method: 'Some.Do',
      undo: { kind: 'absent' },
      isPivot: index === 0,
      timeoutMs: 30_000,
      retry: { maxAttempts, backoff: 'exponential', initialIntervalMs: 1000 },
      input: null,
      undoInput: null,
      undoForMs: index === 0 ? 1 : undefined,
      waitForServiceMs: undefined,
    })),
  },
  fragile: new Set(),
  bare: new Set(),
  silent: new Set(),
  choices: [...Array<number>(8).fill(0), 3759, ...Array<number>(11).fill(0), 1991, 0, 0, 1687, 359],
};

test('whatever happens, every invariant holds after every settle, and the saga ends all done or all undone', () => {
  fc.assert(
    fc.property(scenarios, (scenario) => new Simulation(scenario).run()),
    { numRuns: 4000, examples: [[lateDoubt]] },
  );
});

const arrivals = fc.record({
  op: fc.constantFrom('EXECUTE' as const, 'COMPENSATE' as const),
  now: fc.nat(3),
  latestBegin: fc.nat(3),
});
const handlings = fc.constantFrom<Handling>('do', 'refuse', 'break', 'begin');

test('in whatever order calls arrive at a guarded participant, an undone action stays undone', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(arrivals, handlings, fc.boolean())), (calls) => {
      const participant = new GuardedParticipant();
      let isUndone = false;
      for (const [call, handling, completes] of calls) {
        const reply = participant.arrive(call, handling);
        if (completes) participant.complete();
        isUndone ||= call.op === 'COMPENSATE' && reply === 'done';
        if (isUndone) assert.equal(participant.actions, participant.undos);
      }
    }),
  );
});
