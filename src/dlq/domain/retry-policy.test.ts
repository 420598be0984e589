import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { changeState, hasEnded, redriveStates, type RedriveState } from './redrive.ts';
import {
  changePolicy,
  gatherMs,
  maxRetryDelayMs,
  nextStep,
  policyCommands,
  policyStates,
  policyStatesBefore,
  retryDelayMs,
  roundPauseMs,
  type PolicyFacts,
  type PolicyState,
  type PolicyStep,
  type RoundRedrive,
} from './retry-policy.ts';

const redrives = fc.record<RoundRedrive>({
  state: fc.constantFrom(...redriveStates),
  hasReceipt: fc.boolean(),
  selected: fc.nat({ max: 3 }),
  isStoppedByCanary: fc.boolean(),
});
const facts = fc.record<PolicyFacts>({
  state: fc.constantFrom(...policyStates),
  isConfigured: fc.boolean(),
  round: fc.oneof(redrives, fc.constant(null), fc.constant('gone' as const)),
  isRested: fc.boolean(),
});

test('a policy makes or starts a redrive only while it is active and configured', () => {
  fc.assert(
    fc.property(facts, (given) => {
      const step = nextStep(given);
      if (step === 'make' || step === 'start' || step === 'give_up')
        assert.ok(given.state === 'active' && given.isConfigured);
    }),
  );
});

test('a policy makes no redrive while its last one is unfinished', () => {
  fc.assert(
    fc.property(facts, (given) => {
      if (nextStep(given) === 'make') assert.ok(given.round === null && given.isRested);
      const { round } = given;
      if (round !== null && round !== 'gone' && !hasEnded(round.state))
        assert.ok(!['make', 'close'].includes(nextStep(given)));
    }),
  );
});

test('a round without messages is never started', () => {
  fc.assert(
    fc.property(facts, (given) => {
      if (nextStep(given) !== 'start') return;
      assert.ok(given.round !== null && given.round !== 'gone' && given.round.selected > 0);
    }),
  );
});

type Event = 'tick' | 'plan' | 'plan_empty' | 'fail' | 'expire' | 'finish' | 'outage' | 'canary' | 'receipt';
type Act = Event | 'pause' | 'resume' | 'cancel' | 'add' | 'remove' | 'rest';
const acts: readonly Act[] = [
  ...(['tick', 'tick', 'tick', 'plan', 'plan_empty', 'fail', 'expire', 'finish', 'outage'] as const),
  ...(['canary', 'receipt', 'pause', 'resume', 'cancel', 'add', 'remove', 'rest'] as const),
];

type World = {
  state: PolicyState;
  isConfigured: boolean;
  isRested: boolean;
  round: RoundRedrive | null;
  made: number;
  closed: number;
  steps: PolicyStep[];
};

/** What the SQL of the steps does. */
function apply(world: World, act: Act): void {
  const change = (to: RedriveState | null, more: Partial<RoundRedrive> = {}): void => {
    if (world.round !== null && to !== null) world.round = { ...world.round, state: to, ...more };
  };
  const state = world.round?.state ?? 'finished';
  const close = (): void => {
    world.round = null;
    world.closed += 1;
  };
  switch (act) {
    case 'tick':
      return step(world, change, close);
    case 'plan':
      return change(changeState(state, 'planned'), { selected: 2 });
    case 'plan_empty':
      return change(changeState(state, 'planned'), { selected: 0 });
    case 'fail':
      return change(changeState(state, 'fail'));
    case 'expire':
      return change(changeState(state, 'expire'));
    case 'finish':
      return change(changeState(state, 'finish'), { hasReceipt: true });
    case 'outage':
      return change(changeState(state, 'stop'), { isStoppedByCanary: false });
    case 'canary':
      return change(changeState(state, 'stop'), { isStoppedByCanary: true });
    case 'receipt':
      return change(state === 'cancelled' ? 'cancelled' : null, { hasReceipt: true });
    case 'cancel':
      return change(changeState(state, 'cancel'));
    case 'pause':
    case 'resume':
      return command(world, act, change);
    case 'add':
    case 'remove':
      world.isConfigured = act === 'add';
      return;
    case 'rest':
      world.isRested = true;
  }
}

type Change = (to: RedriveState | null, more?: Partial<RoundRedrive>) => void;

function command(world: World, act: 'pause' | 'resume', change: Change): void {
  const next = changePolicy(world.state, act);
  if (next === null) return;
  world.state = next;
  const state = world.round?.state;
  if (act === 'pause' && state === 'running') change('paused');
  if (act === 'resume' && state === 'paused') change('running');
  if (act === 'resume' && state === 'stopped') change('cancelled');
}

function step(world: World, change: Change, close: () => void): void {
  const { state, isConfigured, isRested, round } = world;
  const next = nextStep({ state, isConfigured, isRested, round });
  world.steps.push(next);
  switch (next) {
    case 'wait':
      return;
    case 'make':
      assert.equal(world.round, null);
      world.round = { state: 'planning', hasReceipt: false, selected: 0, isStoppedByCanary: false };
      world.made += 1;
      world.isRested = false;
      return;
    case 'start':
      return change(changeState('planned', 'start'));
    case 'give_up':
    case 'withdraw':
      return change('cancelled');
    case 'disable':
      world.state = changePolicy(world.state, 'disable') ?? assert.fail('illegal');
      return;
    case 'discard':
    case 'close':
      return close();
  }
}

const newWorld = (): World => ({
  state: 'active',
  isConfigured: true,
  isRested: true,
  round: null,
  made: 0,
  closed: 0,
  steps: [],
});

test('whatever happens, a policy has at most one open round, and its canary stop holds until a person resumes it', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...acts), { maxLength: 60 }), (sequence) => {
      const world = newWorld();
      for (const act of sequence) {
        const { state, made } = world;
        apply(world, act);
        assert.equal(world.made - world.closed, world.round === null ? 0 : 1);
        if (state === 'disabled' && act !== 'resume') {
          assert.equal(world.state, 'disabled');
          assert.equal(world.made, made);
        }
      }
    }),
    { numRuns: 2000 },
  );
});

test('whatever happened, an active policy that is left alone makes a round again', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...acts), { maxLength: 40 }), (sequence) => {
      const world = newWorld();
      for (const act of sequence) apply(world, act);
      // A person resumes what they paused, and the runner does its part.
      world.isConfigured = true;
      if (world.state !== 'active') apply(world, 'resume');
      const { made } = world;
      for (let i = 0; i < 12 && world.made === made; i += 1) {
        apply(world, 'tick');
        if (world.state !== 'active') apply(world, 'resume');
        if (world.round?.state === 'paused') world.round = { ...world.round, state: 'running' };
        for (const act of ['plan', 'finish', 'receipt', 'rest'] as const) apply(world, act);
      }
      assert.ok(world.made > made, world.steps.join(' '));
    }),
    { numRuns: 2000 },
  );
});

test('a removed policy ends the round that it has, and makes no other', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...acts), { maxLength: 40 }), (sequence) => {
      const world = newWorld();
      for (const act of sequence) apply(world, act);
      world.isConfigured = false;
      const { made } = world;
      for (const act of ['tick', 'plan', 'tick', 'finish', 'receipt', 'tick', 'tick'] as const)
        apply(world, act);
      assert.equal(world.made, made);
      // What a person paused, or what was stopped, is left to a person.
      if (world.round !== null) assert.ok(['paused', 'stopped'].includes(world.round.state));
    }),
  );
});

test('a person pauses an active policy, and resumes a paused or disabled one', () => {
  assert.deepEqual(
    policyCommands.map((command) => policyStatesBefore(command)),
    [['active'], ['paused', 'disabled']],
  );
  assert.equal(changePolicy('disabled', 'pause'), null);
  assert.equal(changePolicy('active', 'resume'), null);
});

test('the delay grows with the attempts, and is at most 30 days', () => {
  const policy = { delayMs: 60_000, backoff: 3 };
  assert.deepEqual(
    [0, 1, 2].map((count) => retryDelayMs(policy, count)),
    [60_000, 180_000, 540_000],
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 1000, max: maxRetryDelayMs }),
      fc.double({ min: 1, max: 10, noNaN: true }),
      fc.integer({ min: -5, max: 2_147_483_647 }),
      (delayMs, backoff, count) => {
        const ms = retryDelayMs({ delayMs, backoff }, count);
        assert.ok(ms >= delayMs && ms <= maxRetryDelayMs);
        assert.ok(ms <= retryDelayMs({ delayMs, backoff }, Math.min(count, 2_147_483_646) + 1));
      },
    ),
  );
});

test('rounds wait a minute after the first failure, at most an hour, and gather for at most a minute', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 50].map((failures) => roundPauseMs(failures)),
    [0, 60_000, 120_000, 240_000, 3_600_000],
  );
  assert.deepEqual(
    [1000, 300_000, 86_400_000].map((delayMs) => gatherMs({ delayMs })),
    [100, 30_000, 60_000],
  );
});
