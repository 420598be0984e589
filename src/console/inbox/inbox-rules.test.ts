import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { decideEntry, type Decided, type EntryChange } from './decide-entry.ts';
import { badgesOf, growthOf, stateOf } from './entry-state.ts';
import { compareRanked, rankCodes, rankOf, type Ranked } from './rank.ts';

const now = new Date('2026-11-19T12:00:00Z');
const date = fc.date({ min: new Date('2026-11-01'), max: now, noInvalidDate: true });
const count = fc.integer({ min: 1, max: 1000 });

const group = fc.record({
  danger: fc.constantFrom(null, 'effect_unknown', 'undo_stuck'),
  arrivals: fc.option(
    fc.record({
      recent: fc.nat(500),
      minutes: fc.constant(10),
      usual: fc.float({ min: 0, max: 50, noNaN: true }),
    }),
  ),
  count,
  oldestAt: fc.option(date),
} as const);

test('the order is total: danger first, then growth, then age, whatever else differs', () => {
  const ranked = fc.record({ id: fc.string(), rank: group.map((one) => rankOf(one, now)) });
  fc.assert(
    fc.property(ranked, ranked, ranked, (one: Ranked, other: Ranked, third: Ranked) => {
      assert.equal(Math.sign(compareRanked(one, other)) + Math.sign(compareRanked(other, one)), 0);
      if (compareRanked(one, other) <= 0 && compareRanked(other, third) <= 0)
        assert.ok(compareRanked(one, third) <= 0);
      const [first, second] = [one, other].map(({ rank }) => rankCodes.indexOf(rank.code));
      if ((first ?? 0) < (second ?? 0)) assert.ok(compareRanked(one, other) < 0);
    }),
  );
});

test('what is dangerous is never ranked by its growth or age', () => {
  fc.assert(
    fc.property(group, (one) => {
      const { code } = rankOf(one, now);
      if (one.danger !== null) assert.equal(code, one.danger);
      else assert.equal(code === 'growing', growthOf(one.arrivals) !== null);
    }),
  );
});

test('a snoozed entry is hidden exactly while it has not grown', () => {
  fc.assert(
    fc.property(count, count, fc.option(date), (items, until, newestAt) => {
      const state = stateOf({ count: items, newestAt }, { snooze: { count: until }, done: null });
      assert.equal(state, items > until ? 'open' : 'snoozed');
    }),
  );
});

test('what was done comes back exactly when items arrive after it, or there are more', () => {
  fc.assert(
    fc.property(count, count, fc.option(date), date, (items, before, newestAt, at) => {
      const decision = { snooze: null, done: { count: before, at } };
      const state = stateOf({ count: items, newestAt }, decision);
      const isBack = items > before || (newestAt !== null && newestAt > at);
      assert.equal(state, isBack ? 'open' : 'done');
      const seen = { firstSeenAt: null, goneAt: null, backAt: null };
      const entry = { count: items, newestAt, oldestAt: null, firstAt: null, arrivals: null };
      assert.equal(badgesOf(entry, { seen, decision, now }).includes('back'), isBack);
    }),
  );
});

const person = fc.constantFrom('ada', 'bob');
const change: fc.Arbitrary<EntryChange> = fc.oneof(
  fc.record({
    change: fc.constant('assign' as const),
    owner: fc.option(person.map((subject) => ({ subject, name: subject }))),
    mayTakeOver: fc.boolean(),
    by: person,
  }),
  fc.record({ change: fc.constant('snooze' as const), growsBy: fc.nat(3), by: person }),
  fc.constant({ change: 'wake' as const }),
  fc.record({ change: fc.constant('done' as const), reason: fc.constantFrom('a', 'b'), by: person }),
  fc.constant({ change: 'reopen' as const }),
);

test('after any changes an entry is not snoozed and done at once, and a repeated change changes nothing', () => {
  fc.assert(
    fc.property(fc.array(change), (changes) => {
      let decided: Decided = { owner: null, snooze: null, done: null };
      for (const one of changes) {
        const isDone = decided.done !== null;
        try {
          decided = decideEntry(decided, one, { count: 3, isDone }) ?? decided;
        } catch {
          continue;
        }
        assert.ok(decided.snooze === null || decided.done === null);
        const again = decideEntry(decided, one, { count: 3, isDone: decided.done !== null });
        assert.equal(again, null, JSON.stringify(one));
      }
    }),
  );
});
