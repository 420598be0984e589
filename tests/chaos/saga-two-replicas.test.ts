import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ParticipantRule } from '../support/participant/script.ts';
import { openSagaScene, placeOrder, tagsFrom } from './support/saga-scene.ts';
import type { Replica } from './support/start-replica.ts';
import { until } from './support/until.ts';

const isOf = ({ pid }: Replica, owner: string | null): boolean => owner?.includes(`-${pid}-`) === true;

/** Every tenth saga is refused at its end, and some answers are lost. */
const rules: readonly ParticipantRule[] = [
  { step: 'ship', op: 'action', arrival: 1, chance: 0.1, does: { act: 'refuse' } },
  { op: 'action', arrival: 1, chance: 0.05, does: { act: 'reset', effect: true } },
  { op: 'action', arrival: 1, chance: 0.05, does: { act: 'reset', effect: false } },
];

describe('Two replicas that run sagas together', () => {
  it('share the work, and survive the long sleep of one and the death of the other', async (t) => {
    const at = await openSagaScene({
      script: { rules, otherwise: { act: 'ok', delayMs: 100 } },
      env: { SAGA_MAX_CONCURRENT: '20' },
    });
    t.after(() => at.close());
    const [first, second] = await Promise.all([at.start(), at.start()]);
    await at.begin(placeOrder, tagsFrom('shared', 500));
    const holds = (replica: Replica) => async (): Promise<true | null> =>
      (await at.all()).some(({ owner }) => isOf(replica, owner)) || null;
    for (const replica of [first, second]) await until('both have sagas', holds(replica));

    first.pause();
    // Its sagas come to the other when its lease is over.
    await until('nobody sleeps on a saga', async () => (await holds(first)()) === null || null);
    first.resume();
    await at.begin(placeOrder, tagsFrom('more', 200));
    await until('both have sagas again', holds(first));
    await second.kill();
    await at.atRest(90_000);
    const ends = (await at.check()).map(({ status }) => status);
    assert.deepEqual(new Set(ends), new Set(['COMPLETED', 'FAILED']));
  });
});
