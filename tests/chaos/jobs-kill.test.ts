import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { good, openJobsScene, type JobRow, type JobsScene } from './support/jobs-scene.ts';
import type { WorkerProcess } from './support/start-worker.ts';
import { until } from './support/until.ts';

async function scene(t: TestContext): Promise<JobsScene> {
  const at = await openJobsScene();
  t.after(() => at.close());
  return at;
}

const untilCompleted = (at: JobsScene, count: number): Promise<true> =>
  until(`${count} are completed`, async () => (await at.count('completed')) >= count || null, {
    withinMs: 60_000,
  });

/** How many of these jobs the process has begun. */
async function begunBy(at: JobsScene, { pid }: WorkerProcess, jobs: readonly string[]): Promise<number> {
  const [row] = await at.db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM ledger
    WHERE what = 'started' AND pid = ${pid} AND job_id = ANY (${jobs}::uuid[])`);
  return row?.count ?? 0;
}

describe('Workers that are killed or stopped', { concurrency: 2 }, () => {
  it('lose no job and double none, and each death costs what ran there one attempt', async (t) => {
    const at = await scene(t);
    await at.enqueue(good(600, 20));
    await at.start();
    for (const completed of [60, 200, 350]) {
      const victim = await at.start();
      await untilCompleted(at, completed);
      await victim.kill();
    }
    await at.atRest();
    const rows = await at.check();
    assert.ok(rows.every(({ status }) => status === 'completed'));
  });

  it('for longer than their lease go on with nothing that is no longer theirs', async (t) => {
    const at = await scene(t);
    const jobs = await at.enqueue(good(400, 20));
    const paused = await at.start({ CONCURRENCY: '8' });
    await untilCompleted(at, 40);
    paused.pause();
    const rescuer = await at.start();
    await at.atRest();
    await rescuer.kill();
    const begun = await begunBy(at, paused, jobs);
    paused.resume();
    await at.enqueue(good(100));
    await at.atRest();
    const late = (await begunBy(at, paused, jobs)) - begun;
    assert.ok(late <= 8, `it began ${late} jobs, more than it had in hand`);
    const rows = await at.check();
    assert.ok(rows.every(({ status }) => status === 'completed'));
    const retried = rows.filter(({ retryCount }) => retryCount > 0);
    assert.ok(retried.length > 0, 'it held some');
    assert.ok(retried.every(({ retryCount }) => retryCount === 1));
    assert.equal(await paused.terminate(), 0);
  });

  it('stop when they are told to, with nothing left behind', async (t) => {
    const at = await scene(t);
    await at.enqueue(good(500, 10));
    for (const completed of [50, 150, 300]) {
      const worker = await at.start();
      await untilCompleted(at, completed);
      assert.equal(await worker.terminate(), 0);
      assert.equal(await at.count('running'), 0, 'it gave back what it had not started');
    }
    await at.start();
    await at.atRest();
    const rows = await at.check();
    assert.ok(rows.every(({ status, retryCount }) => status === 'completed' && retryCount === 0));
  });
});

describe('A job that kills its process', () => {
  it('is dead after three of them, alone at the last, and its 499 neighbours are done', async (t) => {
    const at = await scene(t);
    await at.enqueue(good(250, 30));
    const [killer = ''] = await at.enqueue([{ act: 'kill' }]);
    await at.enqueue(good(249, 30), 'other');
    const queues = { QUEUES: 'work,other', CONCURRENCY: '50' };
    const crashes: (readonly JobRow[])[] = [];
    const running = (): Promise<readonly JobRow[]> => at.rows('running');
    for (let time = 1; time <= 3; time += 1) {
      const victim = await at.start(queues);
      assert.equal(await victim.died(60_000), 'SIGKILL');
      crashes.push(await running());
    }
    const costs = (rows: readonly JobRow[]): number =>
      rows.filter(({ jobId }) => jobId !== killer).reduce((sum, { retryCount }) => sum + retryCount, 0);
    const before = costs(await at.rows());
    await at.start(queues);
    await at.atRest();

    assert.deepEqual(
      crashes.map((rows) => rows.some(({ jobId }) => jobId === killer)),
      [true, true, true],
    );
    assert.equal(crashes[2]?.length, 1, 'the last time it is alone');
    const rows = await at.check();
    assert.equal(costs(rows), before, 'the lone run cost no neighbour an attempt');
    const dead = rows.filter(({ status }) => status === 'dead_letter');
    assert.deepEqual(
      dead.map(({ jobId, retryCount, started }) => [jobId, retryCount, started]),
      [[killer, 3, 3]],
    );
  });
});
