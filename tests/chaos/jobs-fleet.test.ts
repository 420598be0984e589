import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Payload } from './jobs-worker.ts';
import { good, openJobsScene } from './support/jobs-scene.ts';
import { startReplica } from './support/start-replica.ts';
import { until } from './support/until.ts';

describe('Eight workers beside two servers', () => {
  it('handle thousands of jobs while processes die, and poison among them slows none of the others', async (t) => {
    const at = await openJobsScene();
    t.after(() => at.close());
    const servers = await Promise.all(
      [1, 2].map(() => startReplica({ DATABASE_URL: at.url, KAFKA_ENABLED: 'false' })),
    );
    t.after(() => Promise.all(servers.map((server) => server.kill())));
    const workers = await Promise.all(Array.from({ length: 8 }, () => at.start({ CONCURRENCY: '5' })));
    const poison: Payload = { act: 'throw' };
    await at.enqueue([...good(500, 5), poison, ...good(1500, 5)]);
    const [first, second] = workers;
    assert.ok(first !== undefined && second !== undefined);
    for (const [i, victim] of [first, second].entries()) {
      await until('many are completed', async () => (await at.count('completed')) >= 300 * (i + 1) || null, {
        withinMs: 60_000,
      });
      await victim.kill();
      await servers[i]?.kill();
    }
    await at.atRest(90_000);
    const rows = await at.check();
    const dead = rows.filter(({ status }) => status === 'dead_letter');
    assert.deepEqual(
      dead.map(({ error, started }) => [error, started]),
      [['it fails every time', 3]],
    );
    const lost = rows.filter(({ status, retryCount }) => status === 'completed' && retryCount > 0);
    assert.ok(lost.length <= 10 * 5, `${lost.length} good ones were tried again for two deaths`);
    assert.ok(lost.every(({ retryCount }) => retryCount === 1));
  });
});
