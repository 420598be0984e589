import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../src/kernel/clock.ts';
import { createLoop } from '../../src/kernel/loop.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createReaperRound } from '../../src/platform/work/reaper.ts';
import { connectTo } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { createTestJobStore } from '../support/job-store.ts';
import { isRenewal, isSettle, startQueueWorker } from '../support/queue-worker.ts';
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

  it('a job that ended meanwhile is not run again, also where its lease was over before that could be written down', async (t) => {
    const postgres = await startRestartablePostgres();
    const others = connectTo(postgres.url);
    t.after(async () => {
      await others.end();
      await postgres.stop();
    });
    let runs = 0;
    const started = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const handler = async (): Promise<void> => {
      runs += 1;
      started.resolve();
      await end.promise;
    };
    // Whoever was refused waits before it tries again; the reaper may be there first.
    const late = Promise.withResolvers<void>();
    let mayWrite = Promise.resolve();
    const { enqueue } = await startQueueWorker({ ...postgres, drop: async () => {} }, t, handler, {
      leaseMs: 2000,
      mayFail: true,
      beforeQuery: (text) => (isRenewal(text) || isSettle(text) ? mayWrite : undefined),
    });
    // As in another process, and ten times as often.
    const reap = createReaperRound({
      hasLeased: async () => true,
      shortestLeaseMs: 10_000,
      reap: createTestJobStore(others).reap,
      clock: systemClock,
      afterOutage: { graceMs: 3000, ping: () => others.query(sql`SELECT 1`) },
      onReaped: () => {},
    });
    let failures = 0;
    let looks = 0;
    const reaper = createLoop({
      name: 'reaper',
      everyMs: 100,
      async run() {
        await reap();
        looks += 1;
      },
      onError() {
        failures += 1;
        looks = 0;
      },
    });
    await reaper.start();
    t.after(() => reaper.stop(AbortSignal.timeout(1000)));
    const { jobId } = await enqueue();
    await started.promise;
    await postgres.crash();
    mayWrite = late.promise;
    end.resolve();
    await until('everybody has noticed, and the lease is long over', async () => failures > 30 || null);
    await postgres.restart();
    await until('the reaper has looked several times', async () => looks > 5 || null);
    late.resolve();
    await eventually(async () => {
      const [job] = await others.query(sql`
        SELECT status, retry_count FROM jobs.job_queue WHERE job_id = ${jobId}`);
      assert.deepEqual(job, { status: 'completed', retry_count: 0 });
    });
    assert.equal(runs, 1);
  });
});
