import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import {
  isInDoubt,
  isReservedHeader,
  maxVersions,
  refuseEdit,
  type AttemptEvents,
  type EditableMessage,
  type EditRequest,
} from './message-edit.ts';
import { redriveHeaders } from './redrive-headers.ts';
import { statuses } from './message.ts';

const message: fc.Arbitrary<EditableMessage> = fc.record({
  status: fc.constantFrom(...statuses),
  version: fc.integer({ min: 0, max: maxVersions }),
  tag: fc.constantFrom('"0-1"', '"0-2"'),
  hasValue: fc.boolean(),
  isInDoubt: fc.boolean(),
});
const request: fc.Arbitrary<EditRequest> = fc.record({
  tags: fc.subarray(['"0-1"', '"0-2"']),
  givesValue: fc.boolean(),
  maySendTwice: fc.boolean(),
});

test('an edit that is made has read the state, and meets no attempt that it does not know of', () => {
  fc.assert(
    fc.property(message, request, (state, asked) => {
      if (refuseEdit(state, asked) !== null) return;
      assert.ok(state.status === 'PENDING' || state.status === 'DEAD');
      assert.ok(asked.tags.includes(state.tag));
      assert.ok(!state.isInDoubt || asked.maySendTwice);
      assert.ok(state.hasValue || asked.givesValue);
      assert.ok(state.version < maxVersions);
    }),
  );
});

test('only a retry or the status decides before the tag, so that the reason for a conflict is the true one', () => {
  fc.assert(
    fc.property(message, request, (state, asked) => {
      const refusal = refuseEdit(state, { ...asked, tags: [] });
      const expected =
        state.status === 'RETRYING' ? 'being_retried' : state.status === 'RESOLVED' ? 'resolved' : 'changed';
      assert.equal(refusal, expected);
    }),
  );
});

describe('in doubt', () => {
  const attempts = (...events: readonly (readonly string[])[]): readonly AttemptEvents[] =>
    events.map((some, i) => ({ attemptNo: events.length - i, events: some }));
  const cases: readonly (readonly [doubt: boolean, ...newestFirst: readonly (readonly string[])[]])[] = [
    [false],
    [false, ['routed', 'marked_dead']],
    [true, ['retry_started', 'publish_unknown']],
    [true, ['retry_started', 'lease_expired']],
    [true, ['retry_started', 'marked_dead']],
    [false, ['retry_started', 'published']],
    [false, ['retry_started', 'published', 'came_back', 'edited']],
    [false, ['retry_started', 'publish_unknown', 'came_back']],
    [false, ['retry_started', 'lease_expired', 'repeated']],
    [true, ['retry_started', 'lease_expired', 'late_failure']],
    [false, ['retry_started', 'released']],
    [true, ['retry_started', 'released'], ['retry_started', 'publish_unknown']],
    [true, ['retry_started', 'publish_failed'], ['retry_started', 'lease_expired']],
    [true, ['retry_started', 'resolved_unpublished', 'reopened'], ['retry_started', 'publish_unknown']],
    [false, ['retry_started', 'published', 'came_back'], ['retry_started', 'publish_unknown']],
    [true, ['retry_started', 'publish_unknown', 'edited'], ['retry_started', 'published', 'came_back']],
  ];
  for (const [doubt, ...newestFirst] of cases)
    test(`${newestFirst.map((events) => events.join(', ')).join('; before that: ') || 'no attempt'}: ${doubt}`, () => {
      assert.equal(isInDoubt(attempts(...newestFirst), true), doubt);
    });

  test('a history that is cut before it decides anything is in doubt', () => {
    const released = attempts(['retry_started', 'released']);
    assert.equal(isInDoubt(released, false), true);
    assert.equal(isInDoubt([...released, ...attempts(['published'])], false), false);
  });

  test('attempts that were not sent change nothing', () => {
    const ends = fc.constantFrom('published', 'publish_unknown', 'lease_expired', 'came_back');
    const unsent = fc.constantFrom('released', 'publish_failed', 'resolved_unpublished');
    fc.assert(
      fc.property(ends, fc.array(unsent, { maxLength: 20 }), (end, later) => {
        const sent = attempts(['retry_started', end]);
        const all = [...attempts(...later.map((event) => ['retry_started', event])), ...sent];
        assert.equal(isInDoubt(all, true), isInDoubt(sent, true));
      }),
    );
  });
});

test('the headers that a retry sets are reserved, however they are written', () => {
  for (const name of Object.values(redriveHeaders)) assert.ok(isReservedHeader(name));
  assert.ok(isReservedHeader('Redrive-Attempt') && isReservedHeader('redrive-'));
  assert.ok(!isReservedHeader('redriven') && !isReservedHeader('x-redrive-attempt'));
});
