import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDestinationGate } from './destination-gate.ts';
import { healthy } from './shared-state.ts';
import { createScene, failFive, limited, sent, startMs } from '../../../tests/support/test-gates.ts';

test('while the database is unavailable nothing is thrown, asked too often or lost', async () => {
  const { scene, newGate } = createScene();
  const gate = await newGate();
  scene.isAway = true;
  for (let i = 0; i < 50; i += 1) {
    gate.report(BigInt(i), { ...limited, retryAfterMs: i === 0 ? 9000 : 10 });
    await gate.flush();
  }
  assert.deepEqual([scene.changes, scene.errors], [1, 1]);
  assert.deepEqual(gate.mayClaim(), { limit: 0, waitMs: 1000, windowAtMs: null });
  scene.isAway = false;
  scene.ms = 4000;
  await gate.refresh();
  await gate.flush();
  assert.equal(gate.mayClaim().waitMs, 5000, 'what is left of the nine seconds');
});

test('an outage that could not be written is written later, unless the destination has answered since', async () => {
  const { scene, newGate } = createScene(2);
  const [one, two] = [await newGate(), await newGate()];
  scene.isAway = true;
  await Promise.all([failFive(one), failFive(two)]);
  assert.deepEqual([one.mayClaim().limit, two.mayClaim().limit], [0, 0]);
  two.report(6n, sent);
  scene.isAway = false;
  scene.ms = 1000;
  await two.refresh();
  await two.flush();
  assert.deepEqual([two.isOpen(), two.mayClaim().limit], [false, Infinity]);
  await one.refresh();
  await one.flush();
  assert.equal(one.isOpen(), true);
});

test('a probe or a first reading that fails in the database is retried after a pause', async () => {
  const { scene, deps, newGate } = createScene();
  const gate = await newGate();
  await failFive(gate);
  scene.ms = 5000;
  scene.isAway = true;
  assert.equal(await gate.takeProbe(), null);
  assert.equal(gate.mayClaim().waitMs, 1000);
  const fresh = createDestinationGate(deps, 'broker');
  fresh.mayClaim();
  await fresh.flush();
  assert.equal(fresh.mayClaim().waitMs, 1000);
  scene.isAway = false;
  assert.equal(await gate.takeProbe(), null);
  scene.ms = 6000;
  assert.deepEqual(await gate.takeProbe(), { lastProbeId: null });
  fresh.mayClaim();
  await fresh.flush();
  assert.ok(fresh.isOpen());
});

test('a reading that was overtaken by a newer one is ignored, but a deleted row is not', async () => {
  const { scene, newGate } = createScene();
  const gate = await newGate();
  scene.ms = 10;
  const early = { state: healthy, version: 0n, nowMs: startMs + 10 };
  scene.ms = 20;
  await failFive(gate);
  gate.learn(early, 10);
  assert.ok(gate.isOpen());
  scene.ms = 30;
  gate.learn({ ...early, nowMs: startMs + 30 }, 30);
  assert.equal(gate.isOpen(), false);
});

test('an outage is reported once, even if the circuit closes again before the answer comes', async () => {
  const { scene, newGate } = createScene();
  const gate = await newGate();
  scene.meanwhile = () => {
    scene.reading = { state: healthy, version: 9n };
    gate.learn({ ...scene.reading, nowMs: startMs + scene.ms }, scene.ms);
    scene.ms += 1;
  };
  scene.lag.before = 1;
  await failFive(gate);
  assert.deepEqual([gate.isOpen(), scene.changes], [false, 1]);
});
