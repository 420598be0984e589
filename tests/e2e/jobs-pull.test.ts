import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, type ApiClient, type Answer } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { fastQueue, root, startJobsSystem, storedJob, type JobsSystem } from '../support/jobs-system.ts';

/** Workers that know nothing but HTTP, against two replicas. */

let one: JobsSystem;
let two: JobsSystem;
const queues = { slow: { ...fastQueue, timeout_ms: 3000 }, brief: fastQueue, crowd: fastQueue };
before(async () => {
  one = await startJobsSystem({ queues });
  two = await startJobsSystem({ queues, database: one.system.database });
});
after(async () => {
  await two.drop();
  await one.drop();
});

type Job = Readonly<{ job_id: string; payload: Readonly<{ n: number }>; retry_count: number; epoch: number }>;
type Finished = Readonly<{ job_id: string; status: string; lease_until?: string }>;

async function claim(api: ApiClient, queue: string, more: object = {}): Promise<readonly Job[]> {
  const answer = await api.post<{ jobs: readonly Job[] }>(`${root}/queues/${queue}/claim`, {
    worker: 'w',
    ...more,
  });
  assert.equal(answer.status, 200, answer.text);
  return answer.body.jobs;
}

function tell(api: ApiClient, job: Job, what: string, more: object = {}): Promise<Answer<Finished>> {
  return api.post(`${root}/${job.job_id}/${what}`, { epoch: job.epoch, ...more });
}

async function staleWrites({ system }: JobsSystem): Promise<number> {
  const { text } = await system.api.get('/metrics');
  return Number(/^redrive_stale_writes_total\{slice="jobs"\} (\d+)/m.exec(text)?.[1] ?? 0);
}

async function claimOne(system: JobsSystem, queue: string, more: object = {}): Promise<Job> {
  const jobId = await system.job({ queue });
  const [job] = await claim(system.system.api, queue, { wait_seconds: 20, ...more });
  assert.equal(job?.job_id, jobId);
  return job;
}

test('eight workers and two replicas complete 300 jobs, each once', async () => {
  const total = 300;
  const { api, db } = one.system;
  await db.query(sql`
    SELECT jobs.enqueue_many('crowd', (SELECT jsonb_agg(jsonb_build_object('payload', jsonb_build_object('n', n)))
                                       FROM generate_series(1, ${total}::int) n))`);
  const done = new Map<number, number>();
  const work = async (worker: number): Promise<void> => {
    const replica = worker % 2 === 0 ? api : two.system.api;
    const other = worker % 2 === 0 ? two.system.api : api;
    while (done.size < total) {
      const jobs = await claim(replica, 'crowd', { worker: `w${worker}`, limit: 7, wait_seconds: 0.2 });
      for (const job of jobs) {
        // Every seventh fails at first and comes to somebody else, perhaps.
        if (job.payload.n % 7 === 0 && job.retry_count === 0) {
          assert.equal((await tell(other, job, 'fail', { error: 'not yet' })).body.status, 'failed');
          continue;
        }
        done.set(job.payload.n, (done.get(job.payload.n) ?? 0) + 1);
        const answer = await tell(other, job, 'complete', { result: { by: worker } });
        assert.deepEqual(answer.body, { job_id: job.job_id, status: 'completed' });
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, worker) => work(worker)));
  assert.equal(done.size, total);
  assert.deepEqual(
    [...done.values()].filter((times) => times !== 1),
    [],
  );
  const [counts] = await db.query<{ completed: number; failures: number }>(sql`
    SELECT count(*) FILTER (WHERE status = 'completed')::int AS completed, sum(retry_count)::int AS failures
    FROM jobs.job_queue WHERE queue = 'crowd'`);
  assert.deepEqual(counts, { completed: total, failures: Math.floor(total / 7) });
});

describe('a worker that is lost', () => {
  test('its job goes to another one when its lease is over, and its late word is refused and counted', async () => {
    const job = await claimOne(one, 'brief', { worker: 'lost', lease_seconds: 1 });
    const [again] = await claim(two.system.api, 'brief', { worker: 'rescuer', wait_seconds: 30 });
    assert.equal(again?.job_id, job.job_id);
    assert.equal(again.retry_count, 1);
    assert.ok(again.epoch > job.epoch);
    const before = await staleWrites(one);
    for (const [what, more] of [
      ['complete', { result: 'late' }],
      ['fail', { error: 'late' }],
      ['heartbeat', {}],
      ['release', {}],
    ] as const)
      assertError(await tell(one.system.api, job, what, more), 409, 'SYS_JOBS_STALE');
    assert.equal(await staleWrites(one), before + 4);
    assert.equal((await tell(two.system.api, again, 'complete', { result: 'in time' })).status, 200);
    assert.equal((await storedJob(one.system.db, job.job_id)).result, 'in time');
  });

  test('one that beats keeps its job, but not beyond the timeout of the queue: then the job has failed', async () => {
    const job = await claimOne(one, 'slow', { lease_seconds: 1 });
    const { system } = one;
    let beats = 0;
    const refused = await eventually(
      async () => {
        const answer = await tell(system.api, job, 'heartbeat', { lease_seconds: 60, progress: { beats } });
        if (answer.status === 200) beats += 1;
        assert.equal(answer.status, 409);
        return answer;
      },
      { everyMs: 100 },
    );
    assertError(refused, 409, 'SYS_JOBS_STALE');
    assert.ok(beats > 0);
    const row = await eventually(async () => {
      const found = await storedJob(system.db, job.job_id);
      assert.notEqual(found.status, 'running');
      return found;
    });
    assert.deepEqual([row.status, row.retry_count], ['failed', 1]);
    assert.deepEqual(row.progress, { beats: beats - 1 });
    assertError(await tell(system.api, job, 'complete'), 409, 'SYS_JOBS_STALE');
  });
});

test('a running job that is cancelled is taken from its worker', async () => {
  const job = await claimOne(one, 'brief');
  const cancelled = await two.system.api.post<Finished>(`${root}/${job.job_id}/cancel`, {
    reason: 'the article is gone',
  });
  assert.deepEqual(cancelled.body, { job_id: job.job_id, status: 'dead_letter' });
  const before = await staleWrites(one);
  for (const what of ['heartbeat', 'complete'])
    assertError(await tell(one.system.api, job, what), 409, 'SYS_JOBS_STALE');
  assert.equal(await staleWrites(one), before + 2);
  const row = await storedJob(one.system.db, job.job_id);
  assert.deepEqual(
    [row.status, row.resolution, row.error_message],
    ['dead_letter', 'cancelled', 'cancelled: the article is gone'],
  );
});

test('a lost answer is asked for again at the other replica, and is the same', async () => {
  const job = await claimOne(one, 'brief');
  const first = await tell(one.system.api, job, 'complete', { result: 1 });
  const again = await tell(two.system.api, job, 'complete', { result: 1 });
  assert.deepEqual([again.status, again.text], [first.status, first.text]);
});

test('a queue with a global limit hands out no more than it allows, over all replicas', async () => {
  const limited = { narrow: { ...fastQueue, global_concurrency: 2 } };
  const third = await startJobsSystem({ queues: { ...queues, ...limited }, database: one.system.database });
  try {
    for (let i = 0; i < 5; i += 1) await third.job({ queue: 'narrow' });
    const claims = await Promise.all(
      Array.from({ length: 4 }, (_, i) => claim(third.system.api, 'narrow', { worker: `n${i}`, limit: 3 })),
    );
    const got = claims.flat();
    assert.equal(got.length, 2);
    const [job] = got;
    assert.ok(job);
    await tell(third.system.api, job, 'complete');
    assert.equal((await claim(third.system.api, 'narrow', { limit: 3 })).length, 1);
  } finally {
    await third.drop();
  }
});

test('a request that waits for work does not hold up the stop of the server', async () => {
  const third = await startJobsSystem({ queues, database: one.system.database });
  const waiting = claim(third.system.api, 'idle', { wait_seconds: 30 });
  await eventually(async () => {
    const idle = await one.system.db.query(sql`
      SELECT 1 FROM platform.idle_workers WHERE channel = 'jobs:idle' AND idle_until > now()`);
    assert.equal(idle.length, 1);
  });
  await third.drop();
  assert.deepEqual(await waiting, []);
});
