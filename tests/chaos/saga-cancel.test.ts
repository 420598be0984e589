import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ParticipantAct } from '../support/participant/script.ts';
import {
  inOrder,
  openSagaScene,
  placeOrder,
  shopStep,
  untilStale,
  workflowOf,
  type SagaScene,
} from './support/saga-scene.ts';

const heldBefore: ParticipantAct = { act: 'hold', effect: 'after' };
const held: ParticipantAct = { act: 'hold', effect: 'before' };

/** Each saga has its own tag, and each tag its own trouble. */
const rules = [
  ...inOrder.map((step) => ({ tag: `during-${step}`, step, op: 'action', does: held }) as const),
  { tag: 'before-effect', step: 'charge', op: 'action', does: heldBefore },
  { tag: 'lost', step: 'charge', op: 'action', does: held },
  { tag: 'waiting', step: 'charge', op: 'action', does: { act: 'status', status: 500, effect: true } },
  { tag: 'polled', step: 'charge', op: 'action', does: { act: 'work', ms: 4000 } },
  { tag: 'undoing', step: 'ship', op: 'action', does: { act: 'refuse' } },
  { tag: 'undoing', step: 'charge', op: 'compensate', does: held },
  { tag: 'pivot', step: 'dispatch', op: 'action', does: held },
  { tag: 'stuck', step: 'charge', op: 'action', does: { act: 'status', status: 500, effect: true } },
] as const;

/** So long between two attempts that only the cancel can wake it. */
const patient = { maxAttempts: 3, backoff: 'fixed', initialIntervalMs: 3_600_000 } as const;

describe('A saga that is cancelled', { concurrency: true }, () => {
  let at: SagaScene;
  before(async () => {
    at = await openSagaScene({ script: { rules } });
  });
  after(() => at.close());

  it('before anybody has begun with it calls nothing', async () => {
    const id = await at.beginOne(placeOrder, 'at-once');
    assert.equal((await at.abort(id)).outcome, 'stored');
    await at.start();
    await at.ends(id, 'CANCELLED');
    assert.deepEqual([await at.calls(id), await at.story(id)], [[], []]);

    await Promise.all([
      ...inOrder.map((step, index) => cancelDuring(step, index)),
      cancelBeforeTheEffect(),
      cancelWhileItWaits(),
      cancelWhilePolled(),
      cancelWhileUndone(),
      cancelBehindThePivot(),
      cancelWhileStuck(),
    ]);
    await at.participant.deliverAgain();
    await at.check();
  });
});
