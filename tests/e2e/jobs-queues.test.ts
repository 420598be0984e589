import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { claimJob, root, startJobsSystem, type JobsSystem } from '../support/jobs-system.ts';

let jobs: JobsSystem;
before(async () => {
  jobs = await startJobsSystem({
    queues: {
      strict: {
        max_retries: 7,
        timeout_ms: 1234,
        keep_completed: false,
        global_concurrency: 2,
        rate_limit: '30/m',
      },
    },
  });
});
after(() => jobs.drop());

const api = () => jobs.system.api;

type ErrorBody = Readonly<{ error: Readonly<{ code: string; message: string }> }>;

type ShownQueue = Readonly<{
  queue: string;
  configured: boolean;
  has_target: boolean;
  paused: boolean;
  paused_at: string | null;
  paused_by: string | null;
  paused_reason: string | null;
  counts: Readonly<Record<string, number>>;
  unresolved: number;
  lag_seconds: number | null;
  max_retries: number;
  timeout_ms: number;
  keep_completed: boolean;
  global_concurrency: number | null;
  rate_limit: unknown;
}>;

const queueNamed = async (name: string): Promise<ShownQueue | undefined> =>
  (await api().get<{ queues: readonly ShownQueue[] }>(`${root}/queues`)).body.queues.find(
    ({ queue }) => queue === name,
  );

describe('queues', () => {
  test('a configured one says what holds for it, without a job', async () => {
    const strict = await queueNamed('strict');
    assert.deepEqual(
      [strict?.configured, strict?.has_target, strict?.paused, strict?.max_retries, strict?.timeout_ms],
      [true, false, false, 7, 1234],
    );
    assert.deepEqual(
      [strict?.keep_completed, strict?.global_concurrency, strict?.rate_limit],
      [false, 2, { count: 30, window_ms: 60_000 }],
    );
    assert.equal(await queueNamed('unheard-of'), undefined);
  });

  test('a used one is there with what is in it, and for how long the oldest has been due', async () => {
    const queue = 'used';
    const [first] = [await jobs.job({ queue }), await jobs.job({ queue })];
    await jobs.job({ queue, run_at: '2126-01-01T00:00:00Z' });
    await jobs.deadJob('x', { queue });
    const done = await jobs.job({ queue });
    await jobs.attempt(done, { outcome: 'completed', result: null });
    await jobs.system.db.query(sql`
      UPDATE jobs.job_queue
      SET (run_at, sort_at, created_at) = (SELECT at, at, at FROM (SELECT now() - interval '1 hour') AS due (at))
      WHERE job_id = ${first}`);
    const used = await queueNamed(queue);
    assert.deepEqual(used?.counts, { pending: 3, running: 0, completed: 1, failed: 0, dead_letter: 1 });
    assert.deepEqual([used?.configured, used?.unresolved], [false, 1]);
    assert.ok(Math.abs((used?.lag_seconds ?? 0) - 3600) < 120, `${used?.lag_seconds}`);
  });

  test('a job that names a time before its making has been due since its making', async () => {
    const queue = 'backdated';
    await jobs.job({ queue, run_at: '1970-01-01T00:00:00Z' });
    const { lag_seconds: lag } = (await queueNamed(queue)) ?? assert.fail('it is not there');
    assert.ok(lag !== null && lag >= 0 && lag < 120, String(lag));
  });

  test('one that has only completed jobs is there too, and has no lag', async () => {
    const done = await jobs.job({ queue: 'finished' });
    await jobs.attempt(done, { outcome: 'completed', result: null });
    const finished = await queueNamed('finished');
    assert.deepEqual([finished?.counts['completed'], finished?.lag_seconds], [1, null]);
  });

  test('one with a target says so', async () => {
    const url = 'http://127.0.0.1:9/summarize';
    const other = await startJobsSystem({
      env: { ROLES: 'api' },
      queues: { pushed: { target: { type: 'http', url } } },
    });
    try {
      const { body } = await other.system.api.get<{ queues: readonly ShownQueue[] }>(`${root}/queues`);
      assert.equal(body.queues.find(({ queue }) => queue === 'pushed')?.has_target, true);
      assert.equal(body.queues.find(({ queue }) => queue === 'mail')?.has_target, false);
    } finally {
      await other.drop();
    }
  });
});

describe('pausing', () => {
  const post = (queue: string, verb: string, body?: unknown, actor = 'alice') =>
    api().post<ShownQueue>(`${root}/queues/${queue}/${verb}`, body, { 'x-actor': actor });
  const isClaimable = (jobId: string): Promise<boolean> =>
    claimJob(jobs.system.db, jobId).then(
      () => true,
      () => false,
    );

  test('nothing of the queue begins until it goes on, and it says who paused it, when and why', async () => {
    const jobId = await jobs.job({ queue: 'halted' });
    const paused = await post('halted', 'pause', { reason: 'the partner is down' });
    assert.equal(paused.status, 200, paused.text);
    assert.deepEqual(
      [paused.body.queue, paused.body.paused, paused.body.paused_by, paused.body.paused_reason],
      ['halted', true, 'alice', 'the partner is down'],
    );
    assert.equal(await isClaimable(jobId), false);
    const shownQueue = await queueNamed('halted');
    assert.deepEqual(
      [shownQueue?.paused, shownQueue?.paused_by, shownQueue?.paused_at, shownQueue?.configured],
      [true, 'alice', paused.body.paused_at, false],
    );

    const resumed = await post('halted', 'resume', { reason: 'it is back' }, 'bob');
    assert.deepEqual(resumed.body, {
      queue: 'halted',
      paused: false,
      paused_at: null,
      paused_by: null,
      paused_reason: null,
    });
    assert.equal(await isClaimable(jobId), true);
  });

  test('who pauses a paused queue changes nothing and is told who did so first', async () => {
    const first = await post('twice', 'pause', { create: true }, 'alice');
    const second = await post('twice', 'pause', { reason: 'again' }, 'bob');
    assert.deepEqual(second.body, first.body);
  });

  test('a queue that is not paused goes on', async () => {
    const answer = await post('mail', 'resume');
    assert.deepEqual([answer.status, answer.body.paused], [200, false]);
  });

  test('a queue that nobody knows is not found, and the nearest name is told', async () => {
    for (const verb of ['pause', 'resume']) {
      const slip = await api().post<ErrorBody>(`${root}/queues/mial/${verb}`);
      assert.deepEqual([slip.status, slip.body.error.code], [404, 'SYS_JOBS_QUEUE_NOT_FOUND']);
      assert.equal(slip.body.error.message, 'queue not found: mial; did you mean mail?');
      const far = await api().post<ErrorBody>(`${root}/queues/never-heard-of/${verb}`);
      assert.equal(far.body.error.message, 'queue not found: never-heard-of');
    }
    const requeue = await api().post<ErrorBody>(`${root}/requeue`, { queue: 'mial' });
    assert.deepEqual([requeue.status, requeue.body.error.code], [404, 'SYS_JOBS_QUEUE_NOT_FOUND']);
    assert.equal(await queueNamed('mial'), undefined);
    assert.equal(await queueNamed('never-heard-of'), undefined);
  });

  test('a queue is known by its configuration, its jobs, whatever became of them, and by its workers', async () => {
    const done = await jobs.job({ queue: 'only-done' });
    await jobs.attempt(done, { outcome: 'completed', result: null });
    await jobs.deadJob('no', { queue: 'only-dead' });
    await claimJob(jobs.system.db, await jobs.job({ queue: 'only-running' }));
    await jobs.system.db.query(sql`
      INSERT INTO platform.idle_workers (channel, worker, idle_until)
      VALUES ('jobs:only-workers', 'somebody', now() - interval '1 hour')`);
    const queues = ['strict', 'only-done', 'only-dead', 'only-running', 'only-workers'];
    const answers = await Promise.all(queues.map((queue) => post(queue, 'pause')));
    assert.deepEqual(
      answers.map(({ body }) => [body.queue, body.paused]),
      queues.map((queue) => [queue, true]),
    );
    await Promise.all(queues.map((queue) => post(queue, 'resume')));
  });

  test('settings of a configured queue stay as they are', async () => {
    await post('strict', 'pause');
    await post('strict', 'resume');
    const strict = await queueNamed('strict');
    assert.deepEqual([strict?.configured, strict?.max_retries, strict?.timeout_ms], [true, 7, 1234]);
  });

  test('a queue that goes on wakes who waits for its jobs', async () => {
    await post('woken', 'pause', { create: true });
    const heard: string[] = [];
    const listener = await jobs.system.db.connect(() => {});
    try {
      await listener.listen('redrive', (channel) => heard.push(channel));
      await jobs.system.db.query(sql`
        INSERT INTO platform.idle_workers (channel, worker, idle_until)
        VALUES ('jobs:woken', 'somebody', now() + interval '1 hour')`);
      await post('woken', 'resume');
      await eventually(() => assert.ok(heard.includes('jobs:woken')));
    } finally {
      await listener.close();
    }
  });
});
