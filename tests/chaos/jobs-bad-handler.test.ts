import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { Payload } from './jobs-worker.ts';
import { good, openJobsScene, type JobRow, type JobsScene } from './support/jobs-scene.ts';
import { until } from './support/until.ts';

async function scene(t: TestContext): Promise<JobsScene> {
  const at = await openJobsScene();
  t.after(() => at.close());
  return at;
}

/** The one among good ones, at the end of all; the good ones are done. */
async function amongGoodOnes(at: JobsScene, payload: Payload, run: () => Promise<void>): Promise<JobRow> {
  await at.enqueue(good(50));
  const [bad = ''] = await at.enqueue([payload]);
  await at.enqueue(good(50));
  await run();
  await at.atRest();
  const rows = await at.check();
  assert.equal(rows.filter(({ status }) => status === 'completed').length, rows.length - 1);
  return at.row(bad);
}

/** A process that ends is started again, as whatever looks after processes does it. */
async function restartThrice(
  at: JobsScene,
  how: Readonly<{ nodeOptions?: readonly string[] }> = {},
): Promise<readonly unknown[]> {
  const ends: unknown[] = [];
  for (let time = 1; time <= 3; time += 1) {
    const worker = await at.start({}, how.nodeOptions);
    ends.push(await worker.died());
  }
  await at.start({}, how.nodeOptions);
  return ends;
}

describe('A handler among good ones', { concurrency: 2 }, () => {
  it('that throws every time is a dead letter after three times', async (t) => {
    const at = await scene(t);
    const bad = await amongGoodOnes(at, { act: 'throw' }, async () => void (await at.start()));
    assert.deepEqual([bad.status, bad.retryCount, bad.error], ['dead_letter', 3, 'it fails every time']);
    assert.equal(bad.started, 3);
  });

  it('that throws keeps nobody waiting: a thousand others are done while it waits for its next time', async (t) => {
    const at = await scene(t);
    await at.db.query(sql`
      INSERT INTO jobs.queues (queue, backoff_initial_ms, backoff_max_ms) VALUES ('slow', 3600000, 3600000)`);
    await at.enqueue(good(500), 'slow');
    const [poison = ''] = await at.enqueue([{ act: 'throw' }], 'slow');
    await at.enqueue(good(500), 'slow');
    await at.start({ QUEUES: 'slow', CONCURRENCY: '1' });
    await until('the others are done', async () => (await at.count('completed')) === 1000 || null, {
      withinMs: 60_000,
    });
    const { status, retryCount, started } = await at.row(poison);
    assert.deepEqual([status, retryCount, started], ['failed', 1, 1]);
  });

  it('that hangs is given up three times, and is a dead letter', async (t) => {
    const at = await scene(t);
    const start = async (): Promise<void> => void (await at.start({ TIMEOUT_MS: '2000' }));
    const bad = await amongGoodOnes(at, { act: 'hang' }, start);
    assert.deepEqual([bad.status, bad.started], ['dead_letter', 3]);
    assert.equal(bad.error, 'timed out after 2000 ms');
  });

  it('that ends its process is a dead letter after three processes', async (t) => {
    const at = await scene(t);
    const bad = await amongGoodOnes(at, { act: 'exit' }, async () => {
      assert.deepEqual(await restartThrice(at), [7, 7, 7]);
    });
    assert.deepEqual([bad.status, bad.started], ['dead_letter', 3]);
    assert.equal(bad.error, 'the worker was lost while it ran the job');
  });

  it('that eats all memory is a dead letter after three processes', async (t) => {
    const at = await scene(t);
    const bad = await amongGoodOnes(at, { act: 'eat' }, async () => {
      const ends = await restartThrice(at, { nodeOptions: ['--max-old-space-size=48'] });
      assert.ok(ends.every((end) => end !== 0));
    });
    assert.deepEqual([bad.status, bad.started], ['dead_letter', 3]);
  });

  it('that comes back when its job runs elsewhere has done its work for nothing', async (t) => {
    const at = await scene(t);
    const folder = await mkdtemp(join(tmpdir(), 'redrive-late-'));
    t.after(() => rm(folder, { recursive: true }));
    const files = [join(folder, 'late'), join(folder, 'next')] as const;
    const late = await at.start({ LEASE_MS: '1000' });
    const [job = ''] = await at.enqueue([{ act: 'block', times: 1, files }]);
    const begun = (count: number) =>
      until(`it has begun ${count} times`, async () => (await at.row(job)).started === count || null, {
        withinMs: 60_000,
      });
    await begun(1);
    const next = await at.start();
    await begun(2);
    await writeFile(files[0], '');
    await until('its end is rejected', async () => late.count('stale') === 1 || null, { explain: late.log });
    assert.equal((await at.row(job)).status, 'running', 'it is still the other one that runs it');
    await writeFile(files[1], '');
    await at.atRest();
    const [row] = await at.check();
    assert.deepEqual([row?.status, row?.retryCount, row?.done], ['completed', 1, 2]);
    await until('its end is told', async () => next.count('completed') === 1 || null);
    assert.equal(late.count('completed'), 0);
  });
});
