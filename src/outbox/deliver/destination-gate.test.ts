import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SendOutcome } from '../domain/order.ts';
import { createDestinationGate, refreshGates } from './destination-gate.ts';
import { healthy } from './shared-state.ts';
import {
  claimAll,
  createScene,
  failFive,
  limit,
  limited,
  sent,
  startMs,
  timeout,
} from '../../../tests/support/test-gates.ts';

const unauthorized: SendOutcome = { end: 'refused', code: 'UNAUTHORIZED', detail: '401' };

test('a gate without a reading lets nothing through, then everything that is wanted', async () => {
  const { deps } = createScene();
  const gate = createDestinationGate(deps, 'broker');
  assert.equal(gate.mayClaim().limit, 0);
  await gate.flush();
  assert.deepEqual(gate.mayClaim(), { limit: Infinity, waitMs: 0, windowAtMs: null });
  assert.equal(gate.mayClaim(32).limit, 32);
});

test('for a healthy destination the shared state is only read', async () => {
  const { scene, deps, newGate } = createScene();
  const gate = await newGate();
  for (let i = 0; i < 500; i += 1) {
    gate.started(1);
    gate.report(BigInt(i), i % 5 === 0 ? timeout : sent);
    gate.giveBack(gate.mayClaim(10), 3);
  }
  await refreshGates(deps, [gate]);
  await gate.flush();
  assert.deepEqual([scene.changes, scene.reading.version, scene.nudges], [0, 0n, 1]);
});

test('a 429 stops claims at once, and halves the rate of all replicas in the next second', async () => {
  const { scene, newGate } = createScene(2);
  const [one, two] = [await newGate(), await newGate()];
  one.started(40);
  one.report(1n, limited);
  assert.equal(one.mayClaim().limit, 0);
  await one.flush();
  await two.refresh();
  assert.deepEqual([one.snapshot().rate, one.snapshot().peak, two.snapshot().rate], [40, 80, 40]);
  assert.deepEqual([await claimAll(one), await claimAll(two)], [0, 0]);
  scene.ms = 1000;
  assert.deepEqual([await claimAll(one), await claimAll(two), await claimAll(one)], [20, 20, 0]);
});

test('the rate is measured by started attempts, or by ended ones if those are more', async () => {
  const { newGate } = createScene();
  const started = await newGate();
  await limit(started, 64);
  assert.equal(started.snapshot().peak, 64);
  const ended = await createScene().newGate();
  for (let i = 0; i < 29; i += 1) ended.report(1n, sent);
  ended.report(1n, limited);
  await ended.flush();
  assert.equal(ended.snapshot().peak, 30);
});

test('a throttled process asks once per window, and calls onChange when there are tokens', async () => {
  const { scene, newGate } = createScene();
  const gate = await newGate();
  await limit(gate, 20);
  scene.ms = 1000;
  const { changes } = scene;
  const granted: number[] = [];
  scene.onNudge = () => void granted.push(gate.mayClaim(4).limit);
  assert.equal(gate.mayClaim(4).limit, 0);
  assert.equal(gate.mayClaim(4).limit, 0);
  await gate.flush();
  assert.equal(granted.at(-1), 4);
  assert.deepEqual(
    [4, 4, 4].map((wanted) => gate.mayClaim(wanted).limit),
    [4, 2, 0],
  );
  scene.ms = 1700;
  assert.deepEqual(gate.mayClaim(4), { limit: 0, waitMs: 300, windowAtMs: null });
  assert.equal(scene.changes, changes + 1);
});

test('returned tokens can be spent in their own window, not in the next', async () => {
  const { scene, newGate } = createScene();
  const gate = await newGate();
  await limit(gate, 20);
  scene.ms = 1000;
  gate.mayClaim();
  await gate.flush();
  const permit = gate.mayClaim();
  gate.giveBack(permit, 6);
  assert.equal(gate.mayClaim().limit, 6);
  scene.ms = 2000;
  gate.mayClaim();
  await gate.flush();
  gate.giveBack(permit, 10);
  assert.equal(gate.mayClaim().limit, 11);
  gate.giveBack({ ...permit, windowAtMs: null }, 10);
  assert.equal(gate.mayClaim().limit, 0);
});

test('with a slow database no token is spent after its window, and none is asked for before the next one', async () => {
  const { scene, newGate } = createScene();
  const gate = await newGate();
  await limit(gate, 20);
  scene.ms = 1100;
  scene.lag = { before: 200, after: 300 };
  gate.mayClaim();
  await gate.flush();
  // Asked at 1100, decided at 1300, answered at 1600: the window ends at 2000, for us between 1800 and 2300.
  scene.ms = 1798;
  const permit = gate.mayClaim(1);
  assert.equal(permit.limit, 1);
  scene.ms = 1799;
  assert.deepEqual(gate.mayClaim(), { limit: 0, waitMs: 501, windowAtMs: null });
  gate.giveBack(permit, 1);
  assert.equal(gate.mayClaim().limit, 0);
});

test('Retry-After blocks every process until its end', async () => {
  const { scene, newGate } = createScene(2);
  const [one, two] = [await newGate(), await newGate()];
  await limit(one, 40, 30_000);
  await limit(one, 40, 2000);
  await two.refresh();
  assert.deepEqual([one.mayClaim().waitMs, two.mayClaim().waitMs], [30_000, 30_000]);
  assert.equal(two.snapshot().holdUntil?.getTime(), startMs + 30_000);
  scene.ms = 29_999;
  assert.deepEqual([await claimAll(one), await claimAll(two)], [0, 0]);
  scene.ms = 30_000;
  assert.deepEqual([await claimAll(one), await claimAll(two), two.snapshot().holdUntil], [20, 20, null]);
});

test('a storm of 429s costs a write or two', async () => {
  const { scene, newGate } = createScene();
  const gate = await newGate();
  for (let i = 0; i < 300; i += 1) gate.report(BigInt(i), { ...limited, retryAfterMs: 5000 });
  await gate.flush();
  for (let i = 0; i < 300; i += 1) {
    gate.report(BigInt(i), { ...limited, retryAfterMs: 4000 });
    await gate.flush();
  }
  assert.equal(scene.reading.version, 1n);
  assert.ok(scene.changes <= 2, String(scene.changes));
});

test('a recovered throttle is dropped, and a new one finds no tokens left over', async () => {
  const { scene, newGate } = createScene();
  const gate = await newGate();
  await limit(gate, 20);
  scene.ms = 60_000;
  assert.equal(await claimAll(gate), Infinity);
  assert.deepEqual([scene.reading.state, gate.snapshot().rate], [healthy, null]);
  await limit(gate, 20);
  assert.equal(await claimAll(gate), 0);
  scene.ms = 61_000;
  assert.equal(await claimAll(gate), 10);
});

test('an outage seen by one process stops all of them, and its own claims at once', async () => {
  const { scene, newGate } = createScene(2);
  const [one, two] = [await newGate(), await newGate()];
  for (const id of [1n, 2n, 3n, 4n]) one.report(id, timeout);
  assert.equal(one.mayClaim().limit, Infinity);
  one.report(5n, timeout);
  assert.equal(one.mayClaim().limit, 0);
  await one.flush();
  assert.deepEqual([one.isOpen(), two.isOpen()], [true, false]);
  await two.refresh();
  scene.ms = 1000;
  assert.deepEqual([two.isOpen(), two.mayClaim().limit, two.mayClaim().waitMs], [true, 0, 4000]);
  assert.deepEqual(two.snapshot().circuit, {
    state: 'open',
    openedAt: new Date(startMs),
    reason: 'NETWORK_TIMEOUT: no answer',
    nextProbeAt: new Date(startMs + 5000),
  });
});

test('three unauthorised orders open the circuit', async () => {
  const { newGate } = createScene();
  const gate = await newGate();
  for (const id of [1n, 2n, 3n]) gate.report(id, unauthorized);
  await gate.flush();
  assert.ok(gate.isOpen());
});

test('one process takes the due probe, and its answer closes the circuit for all', async () => {
  const { scene, newGate } = createScene(2);
  const [one, two] = [await newGate(), await newGate()];
  await failFive(one);
  await two.refresh();
  assert.equal(await one.takeProbe(), null);
  scene.ms = 5000;
  assert.deepEqual(await Promise.all([two.takeProbe(), one.takeProbe()]), [{ lastProbeId: null }, null]);
  await two.reportProbe(7n, timeout);
  await one.refresh();
  assert.equal(one.snapshot().circuit.nextProbeAt?.getTime(), startMs + 15_000);
  scene.ms = 15_000;
  assert.deepEqual(await one.takeProbe(), { lastProbeId: 7n });
  await one.reportProbe(8n, sent);
  await two.refresh();
  assert.deepEqual([one.mayClaim().limit, two.mayClaim().limit], [Infinity, Infinity]);
  assert.deepEqual(scene.reading.state, healthy);
});

test('a probe without an order, or one that was not sent, neither closes the circuit nor doubles the interval', async () => {
  const { scene, newGate } = createScene();
  const gate = await newGate();
  await failFive(gate);
  scene.ms = 5000;
  await gate.takeProbe();
  await gate.reportProbe(null, null);
  scene.ms = 10_000;
  assert.deepEqual(await gate.takeProbe(), { lastProbeId: null });
  await gate.reportProbe(9n, null);
  scene.ms = 15_000;
  assert.deepEqual(await gate.takeProbe(), { lastProbeId: 9n });
});

test('a probe that is answered 429 is contact, and throttles the destination', async () => {
  const { scene, newGate } = createScene();
  const gate = await newGate();
  await failFive(gate);
  scene.ms = 5000;
  await gate.takeProbe();
  await gate.reportProbe(1n, { ...limited, retryAfterMs: 3000 });
  await gate.flush();
  assert.equal(gate.isOpen(), false);
  assert.equal(gate.mayClaim().waitMs, 3000);
});

test('attempts that end while the circuit is open, or ended before, do not open it again', async () => {
  const { scene, newGate } = createScene(2);
  const [one, two] = [await newGate(), await newGate()];
  for (const id of [1n, 2n, 3n, 4n]) two.report(id, timeout);
  await failFive(one);
  const { changes } = scene;
  await failFive(one);
  assert.equal(scene.changes, changes);
  await two.refresh();
  scene.ms = 5000;
  await one.takeProbe();
  await one.reportProbe(1n, sent);
  await two.refresh();
  two.report(5n, timeout);
  await Promise.all([one.flush(), two.flush()]);
  assert.deepEqual(scene.reading.state, healthy);
});
