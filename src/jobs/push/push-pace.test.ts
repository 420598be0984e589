import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPushPace, type PushPace } from './push-pace.ts';

function makePace(replicas = 1) {
  let nowMs = 50_000;
  let answer = Promise.withResolvers<void>();
  const rates: number[] = [];
  const errors: unknown[] = [];
  const pace: PushPace = createPushPace({
    clock: { now: () => new Date(nowMs), monotonicMs: () => nowMs },
    replicas: () => replicas,
    slow(rate) {
      rates.push(rate);
      return answer.promise;
    },
    onError: (error) => errors.push(error),
  });
  return {
    pace,
    rates,
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

test('the measured rate is that of all processes in the last second', () => {
  const { pace, rates, wait } = makePace(3);
  for (let n = 0; n < 8; n += 1) pace.noteStart();
  wait(100);
  pace.noteEnd();
  pace.noteBusy();
  assert.deepEqual(rates, [24]);
});

test('of many busy responses one a second throttles the queue, and none while a throttle is being written', async () => {
  const { pace, rates, wait, answerWith } = makePace();
  for (let n = 0; n < 50; n += 1) pace.noteBusy();
  wait(5000);
  pace.noteBusy();
  assert.equal(rates.length, 1);
  await answerWith();
  wait(999);
  pace.noteBusy();
  assert.equal(rates.length, 1);
  wait(1);
  pace.noteBusy();
  assert.equal(rates.length, 2);
});

test('a throttle that could not be written is written with a later busy response', async () => {
  const { pace, rates, errors, wait, answerWith } = makePace();
  pace.noteBusy();
  await answerWith(new Error('the database is away'));
  assert.equal(errors.length, 1);
  wait(1000);
  pace.noteBusy();
  assert.equal(rates.length, 2);
});
