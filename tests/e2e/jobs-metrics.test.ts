import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { root, startJobsSystem, type JobsSystem } from '../support/jobs-system.ts';

/** Every figure of the jobs after a bit of everything: jobs that go well, fail, die, are put off, lost and cancelled. */

type Claimed = Readonly<{ jobs: readonly Readonly<{ job_id: string; epoch: number }>[] }>;

describe('The figures of the jobs', () => {
  let jobs: JobsSystem;
  before(async () => void (jobs = await startJobsSystem({ queues: { idle: {} } })));
  after(() => jobs.drop());

  /** `name{labels}` and its value. */
  const figures = async (): Promise<ReadonlyMap<string, number>> => {
    const { text } = await jobs.system.api.get('/metrics');
    const lines = text.split('\n').filter((line) => line.startsWith('jobs_'));
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
    );
  };

  /** Takes the next job of a queue as a worker in any language does, and says how it ended. */
  const pull = async (
    queue: string,
    end: string,
    body: Readonly<Record<string, unknown>> = {},
  ): Promise<string> => {
    const { api } = jobs.system;
    const claimed = await api.post<Claimed>(`${root}/queues/${queue}/claim`, { worker: 'worker-1' });
    const [job] = claimed.body.jobs;
    assert.ok(job, claimed.text);
    const ended = await api.post(`${root}/${job.job_id}/${end}`, { epoch: job.epoch, ...body });
    assert.equal(ended.status, 200, ended.text);
    return job.job_id;
  };

  test('tell how many were added, a duplicate not among them', async () => {
    for (let i = 0; i < 5; i += 1) await jobs.job({ dedupe_key: `key-${i}` });
    const again = await jobs.system.api.post(root, { queue: 'mail', payload: {}, dedupe_key: 'key-1' });
    assert.equal(again.status, 200);
    assert.equal((await figures()).get('jobs_enqueued_total{queue="mail"}'), 5);
  });

  test('tell how attempts have ended, and how long they ran', async () => {
    await pull('mail', 'complete', { result: { done: true } });
    await pull('mail', 'complete');
    await pull('mail', 'release');
    await pull('mail', 'fail', { error: 'try again', retry_after_seconds: 600 });
    await pull('mail', 'fail', { error: 'never', retryable: false });
    const now = await figures();
    const ends = ['completed', 'failed', 'dead_letter', 'deferred'].map((outcome) =>
      now.get(`jobs_finished_total{queue="mail",outcome="${outcome}"}`),
    );
    assert.deepEqual(ends, [2, 1, 1, 1]);
    assert.equal(now.get('jobs_dead_letter_total{queue="mail"}'), 1);
    assert.ok((now.get('jobs_duration_seconds_count{queue="mail"}') ?? 0) >= 4);
  });

  test('a job that dies with its worker is a dead letter, too', async () => {
    const jobId = await jobs.job({ queue: 'crashing', max_retries: 1 });
    await jobs.system.api.post(`${root}/queues/crashing/claim`, { worker: 'worker-1' });
    await jobs.system.db.query(sql`
      UPDATE jobs.job_queue SET lease_until = now() - interval '1 second' WHERE job_id = ${jobId}`);
    await jobs.becomes(jobId, 'dead_letter');
    await eventually(async () => {
      const now = await figures();
      assert.equal(now.get('jobs_dead_letter_total{queue="crashing"}'), 1);
      assert.equal(now.get('jobs_finished_total{queue="crashing",outcome="dead_letter"}'), 1);
    });
  });

  test('what a person cancels or discards has not died', async () => {
    const cancelled = await jobs.job({ queue: 'spared' });
    const answer = await jobs.system.api.post(`${root}/${cancelled}/cancel`, { reason: 'not needed' });
    assert.equal(answer.status, 200, answer.text);
    const now = await figures();
    assert.equal(now.get('jobs_dead_letter_total{queue="spared"}'), undefined);
  });

  test('tell how much waits, for how long, and what needs attention', async () => {
    await jobs.job({ queue: 'slow' });
    await jobs.system.db.query(sql`
      UPDATE jobs.job_queue
      SET (run_at, sort_at, created_at) = (SELECT at, at, at FROM (SELECT now() - interval '100 seconds') AS due (at))
      WHERE queue = 'slow'`);
    await eventually(async () => {
      const now = await figures();
      const lag = now.get('jobs_lag_seconds{queue="slow"}') ?? 0;
      assert.ok(lag >= 100 && lag < 200, String(lag));
      assert.equal(now.get('jobs_depth{queue="slow",status="pending"}'), 1);
      assert.equal(now.get('jobs_depth{queue="mail",status="failed"}'), 1);
      assert.equal(now.get('jobs_depth{queue="crashing",status="dead_letter"}'), 1);
      assert.equal(now.get('jobs_depth{queue="idle",status="pending"}'), 0);
      assert.equal(now.get('jobs_lag_seconds{queue="idle"}'), 0);
    });
  });
});
