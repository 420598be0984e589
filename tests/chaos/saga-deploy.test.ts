import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inOrder, openSagaScene, placeOrder, shopStep, workflowOf } from './support/saga-scene.ts';

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
