import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { allowance, spend, startPace, waitMs } from './pace.ts';
import {
  changeState,
  hasEnded,
  redriveChanges,
  redriveStates,
  stateAfter,
  statesBefore,
  type RedriveState,
} from './redrive.ts';
import {
  chooseItems,
  itemOutcomes,
  outcomesBefore,
  type Candidate,
  type ItemOutcome,
} from './redrive-item.ts';

const changes = fc.array(fc.constantFrom(...redriveChanges), { maxLength: 20 });

test('a redrive that has ended never changes again, whatever comes', () => {
  fc.assert(
    fc.property(changes, (sequence) => {
      let state: RedriveState = 'planning';
      let endedIn: RedriveState | null = null;
      for (const change of sequence) {
        state = changeState(state, change) ?? state;
        if (endedIn !== null) assert.equal(state, endedIn);
        if (hasEnded(state)) endedIn = state;
      }
    }),
  );
  assert.deepEqual(redriveStates.filter(hasEnded), ['finished', 'cancelled', 'failed', 'expired']);
});

test('a redrive runs only after a person started it, and finishes only from running', () => {
  fc.assert(
    fc.property(changes, (sequence) => {
      let state: RedriveState = 'planning';
      let isStarted = false;
      for (const change of sequence) {
        const next = changeState(state, change);
        if (next === null) continue;
        isStarted ||= change === 'start';
        if (next === 'running' || next === 'paused' || next === 'stopped') assert.ok(isStarted);
        if (next === 'finished') assert.equal(state, 'running');
        state = next;
      }
    }),
  );
});

test('the list of states for the SQL agrees with the change of one state', () => {
  for (const change of redriveChanges)
    for (const state of redriveStates)
      assert.equal(
        changeState(state, change),
        statesBefore(change).includes(state) ? stateAfter(change) : null,
      );
});

test('a published message can only turn out to have come back, and no outcome is lost', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...itemOutcomes), { maxLength: 10 }), (sequence) => {
      let outcome: ItemOutcome | null = null;
      for (const next of sequence) {
        if (!outcomesBefore(next).includes(outcome)) continue;
        if (outcome === 'published') assert.equal(next, 'came_back');
        else if (outcome !== null) assert.equal(outcome, 'unknown');
        outcome = next;
      }
      assert.equal(outcome === null, sequence.length === 0);
    }),
  );
});

const candidates: fc.Arbitrary<readonly Candidate[]> = fc
  .array(
    fc.record({
      orderKey: fc.constantFrom(null, 'a', 'b', 'c'),
      isUnchanged: fc.boolean(),
      isBehind: fc.constant(false),
      runsAlone: fc.boolean(),
    }),
    { maxLength: 20 },
  )
  .map((rows) => rows.map((row, i) => ({ ...row, position: i + 1, messageId: `m${i}` })));

test('a round never claims a message behind one of its key that it skipped or left waiting', () => {
  fc.assert(
    fc.property(
      candidates,
      fc.uniqueArray(fc.integer({ min: 1, max: 20 })),
      fc.boolean(),
      (rows, heldAt, mayRunAlone) => {
        const held = { positions: new Set(heldAt), keys: new Set<string>(), givenUp: new Set<number>() };
        const choice = chooseItems(rows, held, { mayRunAlone });
        const stopped = [...choice.waiting, ...choice.skip.map(({ candidate }) => candidate)];
        for (const { position, orderKey, runsAlone } of choice.claim) {
          assert.ok(!held.positions.has(position));
          assert.ok(
            !stopped.some((one) => orderKey !== null && one.orderKey === orderKey && one.position < position),
          );
          assert.ok(!runsAlone || (mayRunAlone && choice.claim.length === 1));
        }
        // Nothing is passed over: what was looked at is a prefix, and every candidate of it is in one list.
        const seen = [...choice.claim, ...stopped].map(({ position }) => position).toSorted((a, b) => a - b);
        assert.deepEqual(
          seen,
          rows.slice(0, seen.length).map(({ position }) => position),
        );
        assert.ok(seen.length === rows.length || choice.isAloneNext);
      },
    ),
  );
});

test('a pace never allows more than its rate', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.1, max: 100_000, noNaN: true }),
      fc.array(fc.integer({ min: 0, max: 3000 }), { maxLength: 50 }),
      (rate, steps) => {
        let nowMs = 0;
        let sent = 0;
        let pace = startPace(rate, nowMs);
        assert.equal(allowance(pace, nowMs), 0);
        for (const step of steps) {
          nowMs += step;
          const count = allowance(pace, nowMs);
          assert.ok(count <= 1000);
          if (count === 0) assert.ok(waitMs(pace, nowMs) > 0);
          pace = spend(pace, count, nowMs);
          sent += count;
          assert.ok(sent <= (rate * nowMs) / 1000 + 1e-6);
        }
      },
    ),
  );
});

test('a pace that has waited as long as it said allows at least one message', () => {
  fc.assert(
    fc.property(fc.double({ min: 0.1, max: 100_000, noNaN: true }), (rate) => {
      const pace = startPace(rate, 0);
      assert.ok(allowance(pace, waitMs(pace, 0)) >= 1);
    }),
  );
});
