import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { FaultPlan } from './support/faults.ts';
import {
  inOrder,
  openSagaScene,
  placeOrder,
  tagsFrom,
  type SagaScene,
  type SagaSceneOptions,
} from './support/saga-scene.ts';

async function scene(t: TestContext, options: SagaSceneOptions = {}): Promise<SagaScene> {
  const at = await openSagaScene(options);
  t.after(() => at.close());
  return at;
}

/** The n-th settle of a single saga stores the answer to call n - 1, and the opening of call n. */
const killAt = (at: 'saga_settling' | 'saga_settled', nth: number): FaultPlan => ({
  faults: [{ at, act: 'kill', nth }],
});

/** A saga whose process dies on the way. */
async function dieOnTheWay(at: SagaScene, plan: FaultPlan): Promise<string> {
  const victim = await at.start(plan);
  const id = await at.beginOne(placeOrder);
  assert.equal(await victim.died(), 'SIGKILL');
  return id;
}

const undone = ['undo charge', 'undo reserve'] as const;
const shipRefused = { rules: [{ step: 'ship', does: { act: 'refuse' } }] } as const;

describe('A process that is killed while it runs a saga', { concurrency: 3 }, () => {
  it('before a call, after its row was stored: the row is closed as lost, and the call is made once', async (t) => {
    const at = await scene(t);
    const id = await dieOnTheWay(at, killAt('saga_settled', 1));
    assert.deepEqual([await at.story(id), await at.calls(id)], [['reserve 1 open'], []]);
    await at.start();
    await at.ends(id, 'COMPLETED');
    assert.deepEqual(await at.calls(id), inOrder);
    assert.deepEqual((await at.story(id)).slice(0, 2), ['reserve 1 TIMEOUT', 'reserve 2 SUCCESS']);
    await at.check();
  });

  it('after a call, before its answer was stored: the call is made again, and has happened once', async (t) => {
    const at = await scene(t);
    const id = await dieOnTheWay(at, killAt('saga_settling', 2));
    assert.deepEqual([await at.story(id), await at.calls(id)], [['reserve 1 open'], ['reserve']]);
    await at.start();
    await at.ends(id, 'COMPLETED');
    assert.deepEqual(await at.calls(id), ['reserve', ...inOrder]);
    await at.check();
  });

  it('after an answer was stored: its step is not called again', async (t) => {
    const at = await scene(t);
    const id = await dieOnTheWay(at, killAt('saga_settled', 2));
    assert.deepEqual(await at.story(id), ['reserve 1 SUCCESS', 'charge 1 open']);
    await at.start();
    await at.ends(id, 'COMPLETED');
    assert.deepEqual(await at.calls(id), inOrder);
    await at.check();
  });

  it('after the end was stored: nothing is called again', async (t) => {
    const at = await scene(t);
    const id = await dieOnTheWay(at, killAt('saga_settled', 4));
    assert.equal((await at.find(id)).status, 'COMPLETED');
    await at.start();
    await at.ends(await at.beginOne(placeOrder), 'COMPLETED');
    assert.deepEqual(await at.calls(id), inOrder);
    await at.check();
  });

  for (const [moment, plan, calls] of [
    ['before its first undo', killAt('saga_settled', 4), [...inOrder, ...undone]],
    ['after an undo that is not stored', killAt('saga_settling', 5), [...inOrder, 'undo charge', ...undone]],
    ['between two undos', killAt('saga_settled', 5), [...inOrder, ...undone]],
  ] as const)
    it(`in compensation, ${moment}: it goes on where it was, and each undo happens once`, async (t) => {
      const at = await scene(t, { script: shipRefused });
      const id = await dieOnTheWay(at, plan);
      assert.equal((await at.find(id)).status, 'COMPENSATING');
      await at.start();
      await at.ends(id, 'FAILED');
      assert.deepEqual(await at.calls(id), calls);
      await at.check();
    });

  it('again and again at the same step has spent its budget: everything is undone', async (t) => {
    const at = await scene(t);
    const id = await dieOnTheWay(at, killAt('saga_settling', 2));
    for (let i = 0; i < 2; i += 1) {
      // The first settle of the next one closes the lost attempt, and the saga waits a moment.
      const victim = await at.start(killAt('saga_settling', 3));
      assert.equal(await victim.died(), 'SIGKILL');
    }
    await at.start();
    await at.ends(id, 'FAILED');
    assert.deepEqual(await at.calls(id), ['reserve', 'reserve', 'reserve', 'undo reserve']);
    await at.check();
  });

  it('among 300 sagas loses none of them, and nothing happens twice', async (t) => {
    const refusals = [{ step: 'ship', chance: 0.2, does: { act: 'refuse' } }] as const;
    const at = await scene(t, { script: { rules: refusals } });
    const victim = await at.start(killAt('saga_settling', 6));
    await at.begin(placeOrder, tagsFrom('many', 300));
    assert.equal(await victim.died(), 'SIGKILL');
    assert.ok(
      (await at.all()).some(({ status }) => status === 'RUNNING'),
      'it died on the way',
    );
    await at.start();
    await at.atRest();
    const ends = (await at.check()).map(({ status }) => status);
    assert.deepEqual(new Set(ends), new Set(['COMPLETED', 'FAILED']));
  });
});
