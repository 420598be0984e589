import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClaimCursor } from './claim-cursor.ts';

/** Claims numbers from a list, `limit` at a time, on a clock that the test sets. */
function createScene(due: number[], { isAdaptive = true, limit = 2 } = {}) {
  const scene = { nowMs: 0, fromStartMs: 0, asked: [] as (number | null)[] };
  const cursor = createClaimCursor<number>(
    { now: () => new Date(0), monotonicMs: () => scene.nowMs },
    { isAdaptive },
  );
  const claim = async (): Promise<readonly number[]> => {
    const { rows } = await cursor.claim(async (after) => {
      scene.asked.push(after);
      if (after === null) scene.nowMs += scene.fromStartMs;
      const found = due.filter((row) => row > (after ?? 0)).toSorted((a, b) => a - b);
      const rows = found.slice(0, limit);
      for (const row of rows) due.splice(due.indexOf(row), 1);
      return { rows, last: rows.at(-1) ?? null, count: rows.length, isFull: rows.length === limit };
    });
    return rows;
  };
  return { scene, cursor, claim };
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

test('a claim starts where the last full one stopped, and once a second from the start', async () => {
  const { scene, claim } = createScene(range(1, 20));
  await claim();
  await claim();
  scene.nowMs = 999;
  await claim();
  scene.nowMs = 1000;
  await claim();
  await claim();
  assert.deepEqual(scene.asked, [null, 2, 4, null, 8]);
});

test('after a claim that was not full the next one starts from the start', async () => {
  const due = [3, 4, 5];
  const { scene, claim } = createScene(due);
  await claim();
  assert.deepEqual(await claim(), [5]);
  due.push(1);
  assert.deepEqual(await claim(), [1]);
  assert.deepEqual(scene.asked, [null, 4, null]);
});

test('when nothing is found after the cursor, rows before it are claimed at once', async () => {
  const due = [3, 4];
  const { scene, claim } = createScene(due);
  await claim();
  due.push(1);
  assert.deepEqual(await claim(), [1]);
  assert.deepEqual(scene.asked, [null, 4, null]);
});

test('of claims that run in parallel, one starts from the start', async () => {
  const { scene, claim } = createScene(range(1, 20));
  await claim();
  scene.nowMs = 1000;
  await Promise.all(range(1, 4).map(claim));
  assert.deepEqual(scene.asked, [null, null, 2, 2, 2]);
});

test('slow claims from the start are made less often, also when nothing is found after the cursor', async () => {
  const due = [3, 4];
  const { scene, claim } = createScene(due);
  scene.fromStartMs = 500;
  await claim();
  due.push(1);
  scene.nowMs = 500 + 9999;
  assert.deepEqual(await claim(), []);
  due.push(5);
  assert.deepEqual(await claim(), [5]);
  assert.deepEqual(await claim(), []);
  scene.nowMs = 500 + 10_000;
  assert.deepEqual(await claim(), [1]);
  assert.deepEqual(scene.asked, [null, 4, 4, 5, null]);
});

test('a cursor that is not adaptive claims from the start every second, however long that takes', async () => {
  const { scene, claim } = createScene(range(1, 20), { isAdaptive: false });
  scene.fromStartMs = 500;
  await claim();
  scene.nowMs = 999;
  await claim();
  scene.nowMs = 1000;
  await claim();
  assert.deepEqual(scene.asked, [null, 2, null]);
});

test('rows that were given back are claimed next', async () => {
  const due = range(1, 20);
  const { scene, cursor, claim } = createScene(due);
  cursor.rewind(1);
  await claim();
  due.push(2);
  cursor.rewind(1);
  assert.deepEqual(await claim(), [2, 3]);
  cursor.reset();
  await claim();
  assert.deepEqual(scene.asked, [null, 1, null]);
});
