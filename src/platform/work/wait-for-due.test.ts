import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idlePollMs, waitForDue } from './wait-for-due.ts';

const pollMs = 200;

/** Waits that pass at once, and rows that become due as the test says. */
function createScene() {
  const stopping = new AbortController();
  const scene = {
    isListening: true,
    dueInMs: null as number | null,
    asked: 0,
    waited: [] as number[],
    stopping,
    /** What happens during the nth wait; true for a notification. */
    during: (_count: number): boolean => false,
  };
  const wait = (): Promise<void> =>
    waitForDue(
      {
        isListening: () => scene.isListening,
        async waitForWork(ms) {
          scene.waited.push(ms);
          return scene.during(scene.waited.length);
        },
        async nextDueInMs() {
          scene.asked += 1;
          return scene.dueInMs;
        },
      },
      pollMs,
      stopping.signal,
    );
  return { scene, wait };
}

test('a notification during the short poll ends it', async () => {
  const { scene, wait } = createScene();
  scene.during = () => true;
  await wait();
  assert.deepEqual([scene.waited, scene.asked], [[pollMs], 0]);
});

test('while LISTEN is connected it asks every five seconds when a row is due, until it is notified', async () => {
  const { scene, wait } = createScene();
  scene.during = (count) => count === 4;
  await wait();
  assert.deepEqual(scene.waited, [pollMs, idlePollMs, idlePollMs, idlePollMs]);
  assert.equal(scene.asked, 3);
});

test('it returns when the next row is due', async () => {
  const { scene, wait } = createScene();
  scene.dueInMs = 1234.5;
  await wait();
  assert.deepEqual(scene.waited, [pollMs, 1236]);
});

test('a row that is due later than the next poll is waited for with several polls', async () => {
  const { scene, wait } = createScene();
  scene.dueInMs = idlePollMs + 700;
  scene.during = (count) => {
    if (count === 2) scene.dueInMs = 700;
    return false;
  };
  await wait();
  assert.deepEqual(scene.waited, [pollMs, idlePollMs, 701]);
});

test('while rows are due that cannot be claimed it returns after a short poll', async () => {
  const { scene, wait } = createScene();
  scene.dueInMs = -5;
  await wait();
  assert.deepEqual(scene.waited, [pollMs]);
});

test('without LISTEN it only waits for a short poll, also when the connection is lost meanwhile', async () => {
  const { scene, wait } = createScene();
  scene.isListening = false;
  await wait();
  assert.deepEqual([scene.waited, scene.asked], [[pollMs], 0]);
  scene.isListening = true;
  // The wake-up resolves all waits when its connection is lost.
  scene.during = (count) => {
    scene.isListening = count < 3;
    return count >= 3;
  };
  await wait();
  assert.deepEqual(scene.waited, [pollMs, pollMs, idlePollMs]);
});

test('it returns after half a minute, so that the loop makes a claim', async () => {
  const { scene, wait } = createScene();
  await wait();
  assert.deepEqual(scene.waited, [pollMs, ...Array.from({ length: 6 }, () => idlePollMs)]);
});

test('an abort ends it', async () => {
  const { scene, wait } = createScene();
  scene.during = (count) => {
    if (count === 2) scene.stopping.abort();
    return false;
  };
  await wait();
  assert.equal(scene.waited.length, 2);
});
