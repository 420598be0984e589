import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { fastQueue, root, startJobsSystem, storedJob, type JobsSystem } from '../support/jobs-system.ts';

/** What people decide about jobs, in the whole system. */

let jobs: JobsSystem;
const queues = { bulk: fastQueue, keyed: fastQueue, quiet: fastQueue };
before(async () => void (jobs = await startJobsSystem({ queues })));
after(() => jobs.drop());

type Acted = Readonly<{ job_id: string; status: string }>;
type Requeued = Readonly<{
  requeued: number;
  skipped: number;
  skipped_jobs: readonly Readonly<{ job_id: string; reason: string; holder_job_id: string | null }>[];
}>;

const act = (jobId: string, action: string, body?: object) =>
  jobs.system.api.post<Acted>(`${root}/${jobId}/${action}`, body, { 'x-actor': 'alice' });

const requeueBy = (filter: object, { system }: JobsSystem = jobs) =>
  system.api.post<Requeued>(`${root}/requeue`, filter, { 'x-actor': 'alice' });

async function deadLetterMetric(queue: string): Promise<number> {
  const { text } = await jobs.system.api.get('/metrics');
  return Number(new RegExp(`^jobs_dead_letter_total\\{queue="${queue}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0);
}

test('a dead letter is requeued, fetched by a worker and completed, and its story tells of it', async () => {
  const { api } = jobs.system;
  const jobId = await jobs.deadJob('the mail server is away');
  assert.deepEqual((await act(jobId, 'requeue', { reason: 'it is back' })).body, {
    job_id: jobId,
    status: 'pending',
  });
  const claimed = await api.post<{ jobs: readonly { job_id: string; epoch: number; retry_count: number }[] }>(
    `${root}/queues/mail/claim`,
    { worker: 'w', wait_seconds: 20 },
  );
  const [job] = claimed.body.jobs;
  assert.deepEqual([job?.job_id, job?.retry_count], [jobId, 0]);
  const done = await api.post<Acted>(`${root}/${jobId}/complete`, { epoch: job?.epoch });
  assert.equal(done.body.status, 'completed');
  const told = await api.get<{ actions: readonly { action: string; actor: string; reason: string }[] }>(
    `${root}/${jobId}`,
  );
  assert.deepEqual(
    told.body.actions.map(({ action, actor, reason }) => [action, actor, reason]),
    [['requeue', 'alice', 'it is back']],
  );
});

test('a failure that a worker reports counts as a dead letter; a cancel and a discard do not', async () => {
  const { api } = jobs.system;
  const dead = await jobs.job({ queue: 'quiet' });
  const claimed = await api.post<{ jobs: readonly { epoch: number }[] }>(`${root}/queues/quiet/claim`, {
    worker: 'w',
    wait_seconds: 20,
  });
  const epoch = claimed.body.jobs[0]?.epoch;
  await api.post(`${root}/${dead}/fail`, { epoch, error: 'no such thing', retryable: false });
  assert.equal(await deadLetterMetric('quiet'), 1);
  assert.equal((await act(dead, 'discard')).status, 200);
  const waiting = await jobs.job({ queue: 'quiet' });
  assert.equal((await act(waiting, 'cancel', { reason: 'no' })).status, 200);
  assert.equal(await deadLetterMetric('quiet'), 1);
  const events = await jobs.system.db.query<{ item_id: string }>(sql`
    SELECT item_id FROM platform.notify_events WHERE slice = 'jobs' AND subject = 'quiet'`);
  assert.deepEqual(events, [{ item_id: dead }]);
});

test('bulk requeues at two replicas at once requeue each dead letter once', async () => {
  const { db } = jobs.system;
  const other = await startJobsSystem({ queues, database: jobs.system.database });
  try {
    await db.query(sql`
      INSERT INTO jobs.job_queue (queue, payload, status, retry_count, completed_at, error_message)
      SELECT 'bulk', '{}', 'dead_letter', 3, clock_timestamp(), 'timeout' FROM generate_series(1, 350)`);
    const answers = await Promise.all(
      [jobs, other, jobs, other].map((replica) => requeueBy({ queue: 'bulk', error: 'time' }, replica)),
    );
    const total = answers.reduce((sum, { body }) => sum + body.requeued, 0);
    assert.equal(total, 350);
    const [rows] = await db.query<{ pending: number; actions: number }>(sql`
      SELECT (SELECT count(*)::int FROM jobs.job_queue WHERE queue = 'bulk' AND status = 'pending') AS pending,
             (SELECT count(*)::int FROM jobs.job_actions a JOIN jobs.job_queue j USING (job_id)
              WHERE j.queue = 'bulk') AS actions`);
    assert.deepEqual(rows, { pending: 350, actions: 350 });
  } finally {
    await other.drop();
  }
});

test('a taken dedupe key is a conflict for one, and skipped among many, with the job that has it', async () => {
  const dead = await jobs.deadJob('it broke', { queue: 'keyed', dedupe_key: 'article-7' });
  const free = await jobs.deadJob('it broke', { queue: 'keyed', dedupe_key: 'article-8' });
  const holder = await jobs.job({ queue: 'keyed', dedupe_key: 'article-7' });
  const { message } = assertError(await act(dead, 'requeue'), 409, 'SYS_JOBS_CONFLICT');
  assert.match(message, new RegExp(holder));
  const { body } = await requeueBy({ queue: 'keyed' });
  assert.deepEqual([body.requeued, body.skipped], [1, 1]);
  assert.deepEqual(body.skipped_jobs, [{ job_id: dead, reason: 'dedupe_key_taken', holder_job_id: holder }]);
  assert.equal((await storedJob(jobs.system.db, free)).status, 'pending');
});
