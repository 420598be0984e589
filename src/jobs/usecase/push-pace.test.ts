import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPushPace, type PushPace } from './push-pace.ts';

function makePace(replicas = 1) {
  let nowMs = 50_000;
  let answer = Promise.withResolvers<void>();
  const told: number[] = [];
  const errors: unknown[] = [];
  const pace: PushPace = createPushPace({
    clock: { now: () => new Date(nowMs), monotonicMs: () => nowMs },
    replicas: () => replicas,
    slow(rate) {
      told.push(rate);
      return answer.promise;
    },
    onError: (error) => errors.push(error),
  });
  return {
    pace,
    told,
    errors,
    wait: (ms: number) => void (nowMs += ms),
    answerWith: async (failure?: Error) => {
      if (failure === undefined) answer.resolve();
      else answer.reject(failure);
      answer = Promise.withResolvers();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test('what is told is how fast all processes were in the last second', () => {
  const { pace, told, wait } = makePace(3);
  for (let n = 0; n < 8; n += 1) pace.noteStart();
  wait(100);
  pace.noteEnd();
  pace.noteBusy();
  assert.deepEqual(told, [24]);
});

test('of many refusals one is told a second, and none while one is being told', async () => {
  const { pace, told, wait, answerWith } = makePace();
  for (let n = 0; n < 50; n += 1) pace.noteBusy();
  wait(5000);
  pace.noteBusy();
  assert.equal(told.length, 1);
  await answerWith();
  wait(999);
  pace.noteBusy();
  assert.equal(told.length, 1);
  wait(1);
  pace.noteBusy();
  assert.equal(told.length, 2);
});

test('what could not be told is told with a later refusal', async () => {
  const { pace, told, errors, wait, answerWith } = makePace();
  pace.noteBusy();
  await answerWith(new Error('the database is away'));
  assert.equal(errors.length, 1);
  wait(1000);
  pace.noteBusy();
  assert.equal(told.length, 2);
});
