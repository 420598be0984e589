import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadlineIn } from './deadline.ts';
import { createSlots } from './slots.ts';

const later = (): ReturnType<typeof deadlineIn> => deadlineIn(10_000);

test('only so many work at once, and the others follow in the order of their arrival', async () => {
  const slots = createSlots(2);
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  const begun: number[] = [];
  const works = gates.map((gate, at) =>
    slots.use(later(), async () => {
      begun.push(at);
      await gate.promise;
    }),
  );
  await new Promise(setImmediate);
  assert.deepEqual(begun, [0, 1]);
  gates[1]?.resolve();
  await works[1];
  await new Promise(setImmediate);
  assert.deepEqual(begun, [0, 1, 2]);
  for (const gate of gates) gate.resolve();
  await Promise.all(works);
  assert.deepEqual(begun, [0, 1, 2, 3]);
});

test('who gives up waiting takes no slot with it', async () => {
  const slots = createSlots(1);
  const gate = Promise.withResolvers<void>();
  const working = slots.use(later(), () => gate.promise);
  const stop = new AbortController();
  const waiting = slots.use(deadlineIn(10_000, stop.signal), async () => assert.fail('gave up'));
  stop.abort();
  await assert.rejects(waiting, { name: 'AbortError' });
  await assert.rejects(
    slots.use(deadlineIn(1), async () => assert.fail('gave up')),
    { code: 'SYS_BROKER_TIMEOUT' },
  );
  gate.resolve();
  await working;
  assert.equal(await slots.use(later(), async () => 'free'), 'free');
});

test('who is called in the moment of giving up hands the slot on', async () => {
  const slots = createSlots(1);
  const gate = Promise.withResolvers<void>();
  const working = slots.use(later(), () => gate.promise);
  const stop = new AbortController();
  const waiting = slots.use(deadlineIn(10_000, stop.signal), async () => assert.fail('gave up'));
  // The one who works leaves before the abort is seen, so the slot is given to one who will not take it.
  gate.resolve();
  const aborted = working.then(() => stop.abort());
  await Promise.allSettled([waiting, aborted]);
  assert.equal(await slots.use(deadlineIn(1000), async () => 'free'), 'free');
});

test('a failure frees its slot', async () => {
  const slots = createSlots(1);
  await assert.rejects(
    slots.use(later(), async () => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.equal(await slots.use(later(), async () => 'free'), 'free');
});
