import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { needsApproval, refusalToApprove, refusalToStart } from './approval.ts';

const people = fc.constantFrom('ada', 'bob', 'eve');
const sizes = fc.record({
  selected: fc.nat(30),
  lastHour: fc.nat(30),
  bound: fc.option(fc.nat(30)),
});

test('nobody sends more than the bound in an hour without a second person', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40), { maxLength: 20 }), fc.nat(50), (selections, bound) => {
      let sent = 0;
      for (const selected of selections)
        if (refusalToStart({ selected, lastHour: sent, bound }, null, 'ada') === null) sent += selected;
      assert.ok(sent <= bound);
    }),
  );
});

test('whoever planned, changed or starts a large redrive is not the one who approved it', () => {
  fc.assert(
    fc.property(
      sizes,
      fc.record({ planner: people, editors: fc.array(people), approver: people, starter: people }),
      (size, { starter, ...asked }) => {
        const { planner, editors, approver } = asked;
        fc.pre(needsApproval(size));
        const isApproved = refusalToApprove({ ...asked, isUser: true }) === null;
        const isStarted = isApproved && refusalToStart(size, approver, starter) === null;
        if (isStarted) assert.ok(approver !== planner && approver !== starter && !editors.includes(approver));
      },
    ),
  );
});

test('a key never approves, and a small redrive needs no approval', () => {
  const approver = 'eve';
  assert.notEqual(refusalToApprove({ planner: 'ada', editors: [], approver, isUser: false }), null);
  assert.equal(refusalToApprove({ planner: 'ada', editors: [], approver, isUser: true }), null);
  assert.equal(refusalToStart({ selected: 10, lastHour: 0, bound: 10 }, null, 'ada'), null);
  assert.match(refusalToStart({ selected: 8, lastHour: 3, bound: 10 }, null, 'ada') ?? '', /3 more/);
  assert.equal(refusalToStart({ selected: 800, lastHour: 3, bound: null }, null, 'ada'), null);
});
