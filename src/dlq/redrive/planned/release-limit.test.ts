import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReleaseLimit } from './release-limit.ts';

const ids = (count: number): readonly string[] => Array.from({ length: count }, (_, i) => `m${i}`);

test('halves the batch down to the message that is released again and again, and gives it up', () => {
  const limit = createReleaseLimit();
  const culprit = 'm700';
  let waiting = ids(1000);
  const givenUp: string[] = [];
  let rounds = 0;
  for (; waiting.length > 0; rounds += 1) {
    const batch = waiting.slice(0, limit.batchSize());
    const released = new Set(batch.includes(culprit) ? batch.slice(batch.indexOf(culprit)) : []);
    const over = limit.note(batch, released);
    givenUp.push(...over);
    waiting = waiting.filter((id) => (!batch.includes(id) || released.has(id)) && !over.has(id));
  }
  assert.deepEqual(givenUp, [culprit]);
  assert.ok(rounds < 40, `${rounds} rounds`);
});

test('grows again to whole batches', () => {
  const limit = createReleaseLimit();
  limit.note(ids(1000), new Set(ids(1000)));
  assert.equal(limit.batchSize(), 500);
  limit.note(ids(500), new Set());
  assert.equal(limit.batchSize(), 1000);
});

test('ends also if every message is released every time', () => {
  const limit = createReleaseLimit();
  let waiting = ids(20);
  for (let round = 0; waiting.length > 0; round += 1) {
    assert.ok(round < 200);
    const batch = waiting.slice(0, limit.batchSize());
    const over = limit.note(batch, new Set(batch));
    waiting = waiting.filter((id) => !over.has(id));
  }
});
