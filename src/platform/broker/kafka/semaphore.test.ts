import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadlineIn } from './deadline.ts';
import { createSemaphore } from './semaphore.ts';

const later = (): ReturnType<typeof deadlineIn> => deadlineIn(10_000);

test('limits concurrent work, and callers proceed in the order of arrival', async () => {
  const semaphore = createSemaphore(2);
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  const begun: number[] = [];
  const works = gates.map((gate, at) =>
    semaphore.use(later(), async () => {
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

test('a caller that times out does not use a permit', async () => {
  const semaphore = createSemaphore(1);
  const gate = Promise.withResolvers<void>();
  const working = semaphore.use(later(), () => gate.promise);
  const stop = new AbortController();
  const waiting = semaphore.use(deadlineIn(10_000, stop.signal), async () => assert.fail('gave up'));
  stop.abort();
  await assert.rejects(waiting, { name: 'AbortError' });
  await assert.rejects(
    semaphore.use(deadlineIn(1), async () => assert.fail('gave up')),
    { code: 'SYS_BROKER_TIMEOUT' },
  );
  gate.resolve();
  await working;
  assert.equal(await semaphore.use(later(), async () => 'free'), 'free');
});

test('a caller that times out while it acquires passes the permit on', async () => {
  const semaphore = createSemaphore(1);
  const gate = Promise.withResolvers<void>();
  const working = semaphore.use(later(), () => gate.promise);
  const stop = new AbortController();
  const waiting = semaphore.use(deadlineIn(10_000, stop.signal), async () => assert.fail('gave up'));
  // The one who works leaves before the abort is seen, so the slot is given to one who will not take it.
  gate.resolve();
  const aborted = working.then(() => stop.abort());
  await Promise.allSettled([waiting, aborted]);
  assert.equal(await semaphore.use(deadlineIn(1000), async () => 'free'), 'free');
});

test('a failure releases its permit', async () => {
  const semaphore = createSemaphore(1);
  await assert.rejects(
    semaphore.use(later(), async () => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.equal(await semaphore.use(later(), async () => 'free'), 'free');
});
