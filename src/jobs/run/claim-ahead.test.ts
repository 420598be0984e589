import assert from 'node:assert/strict';
import { test } from 'node:test';
import { averageOf, createClaimer, prefetchOf } from './claim-ahead.ts';
import type { ClaimedJob, ClaimOptions, QueuePosition } from '../claim-jobs.ts';

test('many short jobs are claimed ahead, and no long ones', () => {
  const of = (averageMs: number): number => prefetchOf({ concurrency: 10, averageMs, most: 1000 });
  assert.equal(of(0), 1000);
  assert.equal(of(10), 100);
  assert.equal(of(1000), 1);
  assert.equal(of(60_000), 0);
});

test('the average starts with the first job and follows the others slowly', () => {
  const first = averageOf(null, 100);
  assert.equal(first, 100);
  const second = averageOf(first, 0);
  assert.ok(second < 100 && second > 80);
});

function createScene(due: number[]) {
  const asked: (QueuePosition | null)[] = [];
  const quick: boolean[] = [];
  const state = { quickTakesMs: 0, quickFails: false };
  let nowMs = 0;
  const claimNext = createClaimer(
    async ({ limit, after = null, isQuick = false }: ClaimOptions) => {
      asked.push(after);
      quick.push(isQuick);
      if (isQuick) nowMs += state.quickTakesMs;
      if (isQuick && state.quickFails) throw new Error('canceling statement due to statement timeout');
      const ids = due.filter((id) => id > Number(after?.jobId ?? 0)).slice(0, limit);
      for (const id of ids) due.splice(due.indexOf(id), 1);
      const last = ids.at(-1);
      return {
        jobs: ids.map((id) => ({ jobId: String(id) }) as ClaimedJob),
        last: last === undefined ? null : { sortAt: '', jobId: String(last) },
      };
    },
    { now: () => new Date(nowMs), monotonicMs: () => nowMs },
  );
  const claim = async (limit: number): Promise<readonly string[]> =>
    (await claimNext({ queue: 'q', limit, leaseMs: 1 })).map(({ jobId }) => jobId);
  return { asked, quick, state, claim, pass: (ms: number) => void (nowMs += ms) };
}

test('a claim starts where the last full one ended', async () => {
  const { asked, claim } = createScene([1, 2, 3, 4, 5]);
  assert.deepEqual(await claim(2), ['1', '2']);
  assert.deepEqual(await claim(2), ['3', '4']);
  assert.deepEqual(
    asked.map((after) => after?.jobId),
    [undefined, '2'],
  );
});

test('jobs before the cursor are found when nothing is behind it, and after a second', async () => {
  const due = [3, 4];
  const { asked, claim, pass } = createScene(due);
  await claim(2);
  due.push(1);
  assert.deepEqual(await claim(2), ['1']);
  due.push(5, 6);
  await claim(2);
  due.push(2, 7, 8);
  due.sort((a, b) => a - b);
  pass(1000);
  assert.deepEqual(await claim(2), ['2', '7']);
  assert.equal(asked.at(-1), null);
});

test('a claim is quick if the last one was not full', async () => {
  const { quick, claim } = createScene([1, 2, 3]);
  await claim(2);
  await claim(2);
  await claim(2);
  assert.deepEqual(quick, [false, false, true]);
});

test('after a quick claim that was slow or failed there is none for two minutes', async () => {
  for (const trouble of [{ quickTakesMs: 50 }, { quickFails: true }]) {
    const { quick, state, claim, pass } = createScene([]);
    await claim(2);
    Object.assign(state, trouble);
    await claim(2).catch(() => {});
    for (let i = 0; i < 5; i += 1) await claim(2);
    assert.deepEqual(quick, [false, true, false, false, false, false, false]);
    pass(120_000);
    await claim(2).catch(() => {});
    assert.equal(quick.at(-1), true);
  }
});
