import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReaperRound } from './reaper.ts';

/** A database that the test makes unavailable, and a clock that it sets. */
function createScene({ graceMs = 3000 } = {}) {
  const scene = { nowMs: 0, isDown: false, lost: 1, tookMs: 0, rounds: 0, hasLeased: true };
  const ping = async (): Promise<void> => {
    if (scene.isDown) throw new Error('the database is unavailable');
  };
  const reaped: number[] = [];
  const round = createReaperRound({
    async hasLeased() {
      await ping();
      return scene.hasLeased;
    },
    async reap() {
      await ping();
      scene.rounds += 1;
      scene.nowMs += scene.tookMs;
      return scene.lost;
    },
    clock: { now: () => new Date(scene.nowMs), monotonicMs: () => scene.nowMs },
    shortestLeaseMs: 10_000,
    ...(graceMs > 0 ? { afterOutage: { graceMs, ping } } : {}),
    onReaped: (count) => reaped.push(count),
  });
  return { scene, round, reaped };
}

test('a process that has just started waits first, because the database may have been down until then', async () => {
  const { scene, round } = createScene();
  scene.nowMs = 2900;
  await round();
  assert.equal(scene.rounds, 0);
  scene.nowMs = 3000;
  await round();
  assert.equal(scene.rounds, 1);
});

test('without a grace period it reaps at once, also after an outage', async () => {
  const { scene, round, reaped } = createScene({ graceMs: 0 });
  await round();
  scene.isDown = true;
  await assert.rejects(round());
  scene.isDown = false;
  await round();
  assert.deepEqual(reaped, [1, 1]);
});

test('lost attempts are ended in every round', async () => {
  const { scene, round, reaped } = createScene();
  scene.nowMs = 3000;
  await round();
  await round();
  assert.deepEqual(reaped, [1, 1]);
});

test('after an outage everybody gets time to settle before a lease is reaped', async () => {
  const { scene, round } = createScene();
  scene.nowMs = 3000;
  scene.isDown = true;
  await assert.rejects(round());
  scene.nowMs = 60_000;
  await assert.rejects(round());
  scene.isDown = false;
  await round();
  scene.nowMs += 2900;
  await round();
  assert.equal(scene.rounds, 0);
  scene.nowMs += 100;
  await round();
  assert.equal(scene.rounds, 1);
});

test('a second outage starts the grace period again', async () => {
  const { scene, round } = createScene();
  scene.nowMs = 3000;
  scene.isDown = true;
  await assert.rejects(round());
  scene.isDown = false;
  await round();
  scene.isDown = true;
  scene.nowMs += 3000;
  await assert.rejects(round());
  scene.isDown = false;
  await round();
  await round();
  assert.equal(scene.rounds, 0);
});

test('an expensive round that found nothing is repeated less often', async () => {
  const { scene, round } = createScene({ graceMs: 0 });
  scene.tookMs = 500;
  assert.equal(await round(), 0);
  scene.lost = 0;
  assert.equal(await round(), 10_000);
});

test('while no row is leased it only asks for leased rows, twice in the shortest lease', async () => {
  const { scene, round } = createScene({ graceMs: 0 });
  scene.hasLeased = false;
  assert.equal(await round(), 5000);
  assert.equal(scene.rounds, 0);
  scene.hasLeased = true;
  assert.equal(await round(), 0);
  assert.equal(scene.rounds, 1);
});

test('rows that were leased during a pause are given time too: an outage in it was not noticed', async () => {
  const { scene, round } = createScene();
  scene.nowMs = 3000;
  scene.hasLeased = false;
  await round();
  scene.nowMs += 10_000;
  scene.hasLeased = true;
  await round();
  assert.equal(scene.rounds, 0);
  scene.nowMs += 3000;
  await round();
  assert.equal(scene.rounds, 1);
});
