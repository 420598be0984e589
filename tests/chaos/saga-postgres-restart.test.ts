import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { untilReadiness } from './support/readiness.ts';
import { startRestartablePostgres } from './support/restartable-postgres.ts';
import { openSagaScene, placeOrder, tagsFrom } from './support/saga-scene.ts';
import { until } from './support/until.ts';

describe('When PostgreSQL crashes while sagas are under way and comes back', () => {
  it('the replica goes on by itself, and every saga is done once or undone', async (t) => {
    const postgres = await startRestartablePostgres();
    t.after(() => postgres.stop());
    const at = await openSagaScene({
      database: postgres,
      script: {
        rules: [{ step: 'ship', op: 'action', chance: 0.2, does: { act: 'refuse' } }],
        otherwise: { act: 'ok', delayMs: 50 },
      },
      env: { SAGA_MAX_CONCURRENT: '40' },
    });
    t.after(() => at.close());
    const replica = await at.start();
    await untilReadiness(replica, 'healthy');
    await at.begin(placeOrder, tagsFrom('order', 500));
    const ended = async (): Promise<number> =>
      (await at.all()).filter(({ status }) => status === 'COMPLETED' || status === 'FAILED').length;
    for (const before of [50, 200]) {
      await until('many have ended', async () => (await ended()) >= before || null);
      await postgres.crash();
      await untilReadiness(replica, 'unhealthy');
      await postgres.restart();
    }
    await untilReadiness(replica, 'healthy');
    await at.atRest(90_000);
    const ends = (await at.check()).map(({ status }) => status);
    assert.deepEqual(new Set(ends), new Set(['COMPLETED', 'FAILED']));
  });
});
