import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { FaultPlan } from './support/faults.ts';
import {
  inOrder,
  openSagaScene,
  placeOrder,
  staleWritesOf,
  untilStale,
  type SagaScene,
  type SagaSceneOptions,
} from './support/saga-scene.ts';
import type { Replica } from './support/start-replica.ts';

async function scene(t: TestContext, options: SagaSceneOptions = {}): Promise<SagaScene> {
  const at = await openSagaScene(options);
  t.after(() => at.close());
  return at;
}

const sleepAt = (at: 'saga_settling' | 'saga_settled', nth: number): FaultPlan => ({
  faults: [{ at, act: 'stop', nth }],
});

/** A process with a saga under way, which has fallen asleep. */
async function fallAsleep(
  at: SagaScene,
  plan: FaultPlan,
): Promise<Readonly<{ id: string; sleeper: Replica }>> {
  const sleeper = await at.start(plan);
  const id = await at.beginOne(placeOrder);
  await sleeper.stopped();
  return { id, sleeper };
}

describe('A replica that sleeps longer than its lease', { concurrency: 3 }, () => {
  it('writes nothing of what it was answered, for another has brought the saga to its end', async (t) => {
    const at = await scene(t);
    const { id, sleeper } = await fallAsleep(at, sleepAt('saga_settling', 2));
    await at.start();
    const ended = await at.ends(id, 'COMPLETED');
    sleeper.resume();
    await untilStale(sleeper, 1);
    assert.deepEqual(await at.check(), [ended]);
    assert.deepEqual(await at.calls(id), ['reserve', ...inOrder]);
  });

  it('writes nothing while another has the saga, and calls nothing beside it', async (t) => {
    const held = { step: 'reserve', arrival: 2, does: { act: 'hold', effect: 'after' } } as const;
    const at = await scene(t, { script: { rules: [held] } });
    const { id, sleeper } = await fallAsleep(at, sleepAt('saga_settling', 2));
    const rescuer = await at.start();
    await at.arrives(id, 'reserve', 2);
    const [taken, story] = [await at.find(id), await at.story(id)];
    assert.deepEqual(story, ['reserve 1 TIMEOUT', 'reserve 2 open']);
    sleeper.resume();
    await untilStale(sleeper, 1);
    assert.deepEqual([await at.find(id), await at.story(id)], [taken, story]);
    await at.participant.release();
    await at.ends(id, 'COMPLETED');
    assert.deepEqual(await at.calls(id), ['reserve', ...inOrder]);
    assert.equal(await staleWritesOf(rescuer), 0);
    await at.check();
  });

  it('does not make the call that it had opened', async (t) => {
    const at = await scene(t);
    const { id, sleeper } = await fallAsleep(at, sleepAt('saga_settled', 1));
    const rescuer = await at.start();
    await at.ends(id, 'COMPLETED');
    await rescuer.kill();
    sleeper.resume();
    await at.ends(await at.beginOne(placeOrder), 'COMPLETED');
    assert.deepEqual(await at.calls(id), inOrder);
    await at.check();
  });

  it('does not undo again what another has undone', async (t) => {
    const at = await scene(t, { script: { rules: [{ step: 'ship', does: { act: 'refuse' } }] } });
    const { id, sleeper } = await fallAsleep(at, sleepAt('saga_settling', 5));
    await at.start();
    const ended = await at.ends(id, 'FAILED');
    sleeper.resume();
    await untilStale(sleeper, 1);
    assert.deepEqual(await at.check(), [ended]);
  });
});
