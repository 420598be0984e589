import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { good, openJobsScene } from './support/jobs-scene.ts';
import { startRestartablePostgres } from './support/restartable-postgres.ts';
import { until } from './support/until.ts';

describe('When PostgreSQL crashes while jobs are handled and comes back', () => {
  it('the workers go on by themselves, and no job is lost or done twice in the books', async (t) => {
    const postgres = await startRestartablePostgres();
    const at = await openJobsScene({ database: postgres });
    t.after(async () => {
      await at.close();
      await postgres.stop();
    });
    const workers = [await at.start(), await at.start()];
    await at.enqueue(good(1500, 10));
    for (const completed of [100, 600]) {
      await until('many are completed', async () => (await at.count('completed')) >= completed || null, {
        withinMs: 60_000,
      });
      await postgres.crash();
      await postgres.restart();
    }
    await at.atRest(90_000);
    const rows = await at.check();
    assert.ok(rows.every(({ status }) => status === 'completed'));
    for (const worker of workers) assert.equal(await worker.terminate(), 0);
  });
});
