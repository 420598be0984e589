import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inOrder, openSagaScene, placeOrder, shopStep, tagsFrom, workflowOf } from './support/saga-scene.ts';
import { until } from './support/until.ts';

const held = { step: 'charge', op: 'action', does: { act: 'hold', effect: 'before' } } as const;

/** The same name with other steps in another order, and other undos. */
const next = workflowOf(
  placeOrder.name,
  shopStep('check'),
  shopStep('charge', { undo: { kind: 'none' } }),
  shopStep('pack'),
);

describe('A new definition of a workflow whose sagas run', () => {
  it('is for those that begin now: the others keep theirs, over a restart too, and also on their way back', async (t) => {
    const refused = { tag: 'old-refused', step: 'ship', op: 'action', does: { act: 'refuse' } } as const;
    const at = await openSagaScene({
      script: {
        rules: [refused, { ...held, tag: 'old' }, { ...held, tag: 'old-refused' }, { ...held, tag: 'lost' }],
      },
    });
    t.after(() => at.close());
    const replica = await at.start();
    const [old, refusedLater, lost] = await Promise.all(
      ['old', 'old-refused', 'lost'].map((tag) => at.beginOne(placeOrder, tag)),
    );
    assert.ok(old !== undefined && refusedLater !== undefined && lost !== undefined);
    for (const id of [old, refusedLater, lost]) await at.arrives(id, 'charge');
    const hash = await at.register(next);
    const young = await at.beginOne(next, 'young');
    await at.ends(young, 'COMPLETED');
    assert.deepEqual(await at.calls(young), ['check', 'charge', 'pack']);

    for (const tag of ['old', 'old-refused']) await at.participant.release(tag);
    await at.ends(old, 'COMPLETED');
    await at.ends(refusedLater, 'FAILED');
    assert.deepEqual(await at.calls(old), inOrder);
    assert.deepEqual(await at.calls(refusedLater), [...inOrder, 'undo charge', 'undo reserve']);

    await replica.kill();
    await at.participant.release('lost');
    await at.start();
    await at.ends(lost, 'COMPLETED');
    assert.deepEqual(await at.calls(lost), ['reserve', 'charge', 'charge', 'ship']);
    const sagas = await at.check();
    assert.deepEqual(
      sagas.filter((saga) => saga.hash === hash).map(({ id }) => id),
      [young],
    );
  });
});

describe('A replica that is replaced while its sagas run', () => {
  it('ends its calls, opens no others, and leaves the rest to the next one: no attempt is lost', async (t) => {
    const at = await openSagaScene({
      script: { otherwise: { act: 'ok', delayMs: 100 } },
      // So long that nothing can come from a lease that is over.
      env: { SAGA_LEASE_SECS: '60', SAGA_MAX_CONCURRENT: '20' },
    });
    t.after(() => at.close());
    const old = await at.start();
    await at.begin(placeOrder, tagsFrom('order', 200));
    const count = async (status: string): Promise<number> =>
      (await at.all()).filter((saga) => saga.status === status).length;
    await until('some have ended', async () => (await count('COMPLETED')) >= 10 || null);
    const [code] = await Promise.all([old.terminate(), at.start()]);
    assert.equal(code, 0);
    await at.atRest();
    const sagas = await at.check();
    for (const { id, status } of sagas) {
      assert.equal(status, 'COMPLETED');
      assert.deepEqual(
        await at.story(id),
        inOrder.map((step) => `${step} 1 SUCCESS`),
      );
    }
  });
});
