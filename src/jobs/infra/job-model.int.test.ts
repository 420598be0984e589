import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { sql } from '../../platform/postgres/sql.ts';
import {
  endAttempt,
  requeue,
  startAttempt,
  type AttemptEnd,
  type JobState,
  type Status,
} from '../domain/job.ts';
import { defaultSettings, type QueueSettings } from '../domain/queue-settings.ts';
import type { ClaimedJob, JobEnd } from '../usecase/ports.ts';
import { createPostgresJobStore } from './postgres-job-store.ts';

/**
 * Drives the SQL of the slice and the pure state machine with the same random commands: both must agree on every
 * answer and on every state, so the WHERE and SET clauses cannot drift from the rules.
 */
let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const settings: QueueSettings = {
  ...defaultSettings,
  backoff: { initialMs: 0, maxMs: 0, jitter: 0 },
  maxDeferrals: 2,
  keepCompleted: true,
};
const limits = { maxDeferrals: 2, backoff: settings.backoff };
const commands = [
  'claim',
  'complete',
  'fail',
  'fail for good',
  'defer',
  'give back unstarted',
  'settle a lost claim',
  'lose the lease',
  'requeue by hand',
] as const;
type Command = (typeof commands)[number];

test('SQL and the state machine agree under every sequence of commands', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...commands), { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 1, max: 3 }),
      async (sequence, maxRetries) => {
        const scene = await openScene(maxRetries);
        for (const command of sequence) await scene.run(command);
      },
    ),
    { numRuns: 60 },
  );
});

async function openScene(maxRetries: number) {
  const queue = `model-${crypto.randomUUID()}`;
  const worker = createTestWorker(database.db);
  const store = createPostgresJobStore(database.db, worker, {
    book: { settingsOf: () => settings, isLimited: () => false },
    onSettleRetry: () => {},
  });
  const { jobId } = await store.enqueue({
    queue,
    payload: '{"article_id": "a-1"}',
    dedupeKey: null,
    priority: 0,
    runAt: null,
    maxRetries,
    trace: null,
  });
  let model: JobState = { status: 'pending', retryCount: 0, maxRetries, deferrals: 0, resolution: null };
  let held: ClaimedJob | null = null;
  let lost: ClaimedJob | null = null;

  const settleAs = async (job: ClaimedJob, end: AttemptEnd): Promise<Status | null> => {
    const [settled] = await store.settle(queue, [rowOf(job, end)]);
    return settled?.status ?? null;
  };
  const finish = async (end: AttemptEnd): Promise<void> => {
    if (held === null) return;
    const ended = endAttempt(model, end, limits) ?? assert.fail();
    assert.equal(await settleAs(held, end), ended.job.status);
    model = ended.job;
    lost = held;
    held = null;
  };
  const act: Readonly<Record<Command, () => Promise<void>>> = {
    async claim() {
      const options = { queue, limit: 5, leaseMs: 60_000, after: null };
      const alone = await store.claim({ ...options, lane: 'alone' });
      const together = await store.claim({ ...options, lane: 'together' });
      const [job] = [...alone.jobs, ...together.jobs];
      const started = startAttempt(model);
      assert.equal(job?.jobId, started === null ? undefined : jobId);
      if (job === undefined || started === null) return;
      assert.deepEqual([job.retryCount, job.maxRetries], [model.retryCount, maxRetries]);
      [held, model] = [job, started];
    },
    complete: () => finish({ end: 'completed' }),
    fail: () => finish({ end: 'failed', isRetryable: true }),
    'fail for good': () => finish({ end: 'failed', isRetryable: false }),
    defer: () => finish({ end: 'deferred', delayMs: 0 }),
    'give back unstarted': () => finish({ end: 'unstarted' }),
    async 'settle a lost claim'() {
      if (lost === null || held === null) return;
      const before = worker.stale.count;
      assert.equal(await settleAs(lost, { end: 'completed' }), null);
      assert.equal(worker.stale.count, before + 1);
    },
    async 'lose the lease'() {
      if (held === null) return;
      await database.db.query(sql`
        UPDATE jobs.job_queue SET lease_until = now() - interval '1 second' WHERE job_id = ${jobId}`);
      assert.ok((await store.reap()) >= 1);
      model = endAttempt(model, { end: 'lease_over' }, limits)?.job ?? assert.fail();
      const stale = worker.stale.count;
      assert.equal(await settleAs(held, { end: 'completed' }), null);
      assert.equal(worker.stale.count, stale + 1);
      [lost, held] = [held, null];
    },
    async 'requeue by hand'() {
      const requeued = requeue(model);
      if (requeued === null) return;
      await database.db.query(sql`
        UPDATE jobs.job_queue SET status = 'pending', retry_count = 0 WHERE job_id = ${jobId}`);
      model = requeued;
      lost = null;
    },
  };
  return {
    async run(command: Command): Promise<void> {
      await act[command]();
      const [row] = await database.db.query<JobState & { attempts: bigint }>(sql`
        SELECT status, retry_count AS "retryCount", max_retries AS "maxRetries", deferrals, resolution
        FROM jobs.job_queue WHERE job_id = ${jobId}`);
      assert.deepEqual(row, model, command);
    },
  };
}

function rowOf(job: ClaimedJob, end: AttemptEnd): JobEnd {
  const base = { job, startedAt: null };
  switch (end.end) {
    case 'completed':
      return { ...base, end: 'completed', result: '{"ok": true}' };
    case 'failed':
      return { ...base, end: 'failed', error: 'it failed', isRetryable: end.isRetryable, retryAfterMs: null };
    case 'deferred':
      return { ...base, end: 'deferred', delayMs: end.delayMs, reason: 'later' };
    case 'unstarted':
      return { ...base, end: 'unstarted' };
    case 'lease_over':
      return assert.fail('the reaper ends that');
  }
}
