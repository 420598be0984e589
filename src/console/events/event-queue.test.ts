import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { createEventQueue, type EventQueue } from './event-queue.ts';

function drain(queue: EventQueue) {
  const events: { event: string; data: unknown; isLast: boolean }[] = [];
  for (let next = queue.next(); next !== null; next = queue.next())
    events.push({ ...next, data: JSON.parse(next.data) });
  return events;
}

test('changes of a slice become one event, and more than 50 become many', () => {
  const queue = createEventQueue();
  queue.changed('dlq', ['a', 'b'], false);
  queue.changed('dlq', ['b', 'c'], false);
  queue.changed(
    'jobs',
    Array.from({ length: 51 }, (_, i) => String(i)),
    false,
  );
  queue.counted('jobs', 3);
  assert.deepEqual(drain(queue), [
    { event: 'change', data: { slice: 'dlq', ids: ['a', 'b', 'c'], many: false, counts: {} }, isLast: false },
    {
      event: 'change',
      data: { slice: 'jobs', ids: [], many: true, counts: { needs_attention: 3 } },
      isLast: true,
    },
  ]);
});

test('figures are told when they are others', () => {
  const queue = createEventQueue();
  queue.counted('dlq', 3);
  assert.equal(drain(queue).length, 1);
  queue.counted('dlq', 3);
  assert.equal(drain(queue).length, 0);
  queue.counted('dlq', 4);
  queue.redrives('{"redrives":[]}');
  queue.redrives('{"redrives":[{"id":"a"}]}');
  assert.deepEqual(
    drain(queue).map(({ event }) => event),
    ['change', 'redrive'],
  );
});

test('a figure that could not be counted is told as unknown, once', () => {
  const queue = createEventQueue();
  queue.counted('dlq', 3);
  drain(queue);
  queue.counted('dlq', null);
  assert.deepEqual(drain(queue), [
    {
      event: 'change',
      data: { slice: 'dlq', ids: [], many: false, counts: { needs_attention: null } },
      isLast: true,
    },
  ]);
  queue.counted('dlq', null);
  assert.equal(drain(queue).length, 0);
  queue.counted('dlq', 3);
  assert.equal(drain(queue).length, 1);
});

test('however much a client does not read, it is told little: it is bounded, and nothing is lost', () => {
  const change = fc.record({
    slice: fc.constantFrom('dlq', 'jobs'),
    ids: fc.array(fc.integer({ max: 200, min: 0 }).map(String), { maxLength: 20 }),
    many: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (all) => {
      const queue = createEventQueue();
      for (const { slice, ids, many } of all) queue.changed(slice, ids, many);
      const told = drain(queue);
      assert.ok(told.length <= 2);
      for (const { slice, ids, many } of all) {
        const { data } = told.find((one) => (one.data as { slice: string }).slice === slice) ?? {};
        const { ids: toldIds, many: isMany } = data as { ids: string[]; many: boolean };
        assert.ok(toldIds.length <= 50);
        assert.ok(isMany || (!many && ids.every((id) => toldIds.includes(id))));
      }
    }),
  );
});
