import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { endAttempt, startAttempt, type AttemptEnd } from '../../../tests/support/job-model.ts';
import { createTestJobStore } from '../../../tests/support/job-store.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { ClaimedJob } from '../claim-jobs.ts';
import { requeue, type JobState, type Status } from '../domain/job.ts';
import { defaultSettings, type QueueSettings } from '../domain/queue-settings.ts';
import type { Settlement } from '../settle-jobs.ts';

/**
 * Runs the same random commands against the SQL of the slice and a model: both must agree on every result and every
 * state, so that the WHERE and SET clauses cannot drift from the rules.
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

test('the SQL and the model agree under every sequence of commands', async () => {
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
  const store = createTestJobStore(database.db, {
    worker,
    queues: { settingsOf: () => settings, isLimited: () => false },
  });
  const { jobId } = await store.enqueue(queue, { payload: '{"article_id": "a-1"}', maxRetries });
  let model: JobState = { status: 'pending', retryCount: 0, maxRetries, deferrals: 0, resolution: null };
  let leased: ClaimedJob | null = null;
  let lost: ClaimedJob | null = null;

  const settleAs = async (job: ClaimedJob, end: AttemptEnd): Promise<Status | null> => {
    const [settled] = await store.settle(queue, [settlementOf(job, end)]);
    return settled?.status ?? null;
  };
  const finish = async (end: AttemptEnd): Promise<void> => {
    if (leased === null) return;
    const ended = endAttempt(model, end, limits) ?? assert.fail();
    assert.equal(await settleAs(leased, end), ended.job.status);
    model = ended.job;
    lost = leased;
    leased = null;
  };
  const act: Readonly<Record<Command, () => Promise<void>>> = {
    async claim() {
      const solo = await store.claim({ queue, limit: 5, isSolo: true });
      const others = await store.claim({ queue, limit: 5 });
      const [job] = [...solo.jobs, ...others.jobs];
      const started = startAttempt(model);
      assert.equal(job?.jobId, started === null ? undefined : jobId);
      if (job === undefined || started === null) return;
      assert.deepEqual([job.retryCount, job.maxRetries], [model.retryCount, maxRetries]);
      [leased, model] = [job, started];
    },
    complete: () => finish({ outcome: 'completed' }),
    fail: () => finish({ outcome: 'failed', isRetryable: true }),
    'fail for good': () => finish({ outcome: 'failed', isRetryable: false }),
    defer: () => finish({ outcome: 'deferred', delayMs: 0 }),
    'give back unstarted': () => finish({ outcome: 'unstarted' }),
    async 'settle a lost claim'() {
      if (lost === null || leased === null) return;
      const before = worker.stale.count;
      assert.equal(await settleAs(lost, { outcome: 'completed' }), null);
      assert.equal(worker.stale.count, before + 1);
    },
    async 'lose the lease'() {
      if (leased === null) return;
      await database.db.query(sql`
        UPDATE jobs.job_queue SET lease_until = now() - interval '1 second' WHERE job_id = ${jobId}`);
      assert.ok((await store.reap()) >= 1);
      model = endAttempt(model, { outcome: 'lease_expired' }, limits)?.job ?? assert.fail();
      const stale = worker.stale.count;
      assert.equal(await settleAs(leased, { outcome: 'completed' }), null);
      assert.equal(worker.stale.count, stale + 1);
      [lost, leased] = [leased, null];
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

function settlementOf(job: ClaimedJob, end: AttemptEnd): Settlement {
  const base = { job, ran: null };
  switch (end.outcome) {
    case 'completed':
      return { ...base, outcome: 'completed', result: '{"ok": true}' };
    case 'failed':
      return {
        ...base,
        outcome: 'failed',
        error: 'it failed',
        isRetryable: end.isRetryable,
        retryAfterMs: null,
      };
    case 'deferred':
      return { ...base, outcome: 'deferred', delayMs: end.delayMs, reason: 'later' };
    case 'unstarted':
      return { ...base, outcome: 'unstarted' };
    case 'lease_expired':
      return assert.fail('the reaper does that');
  }
}
