import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertError } from '../../../tests/support/api-client.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { startJobsApi, type ClaimedBody, type JobsApi } from '../../../tests/support/jobs-api.ts';
import { sql } from '../../platform/postgres/sql.ts';

let jobs: JobsApi;
before(async () => void (jobs = await startJobsApi()));
after(() => jobs.drop());

/** A claimed job of a new queue. */
async function claimed(
  settings: Parameters<JobsApi['queue']>[0] = {},
  more: object = {},
): Promise<ClaimedBody> {
  const queue = await jobs.queue(settings);
  await jobs.enqueue(queue);
  const [job] = await jobs.claim(queue, more);
  return job ?? assert.fail('nothing was claimed');
}

/** Nothing is looked for again at once. */
const reapOne = () => eventually(async () => assert.equal(await jobs.store.reap(), 1));

/** The job after the reaper has ended its attempt, and its attempt row. */
async function reapedAs(jobId: string): Promise<unknown> {
  const [row] = await jobs.db.query(sql`
    SELECT j.status, j.retry_count, j.lease_lost, a.error, a.worker
    FROM jobs.job_queue j JOIN jobs.job_attempts a USING (job_id)
    WHERE job_id = ${jobId} AND j.error_message = a.error`);
  return row;
}

const unknownId = '01900000-0000-7000-8000-000000000000';

describe('ending a job', () => {
  test('a completed job keeps its result, whatever JSON it is', async () => {
    for (const result of [{ a: [1, null] }, 'text', 0, false, null]) {
      const { job_id: jobId, epoch } = await claimed();
      const answer = await jobs.report(jobId, 'complete', { epoch, result });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.body, { job_id: jobId, status: 'completed' });
      const row = await jobs.row(jobId);
      assert.deepEqual([row.status, row.result, row.lease_owner], ['completed', result, null]);
    }
  });

  test('a failed job is retried after its backoff, and is dead after its last retry', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.enqueue(queue, { maxRetries: 2 });
    const [job] = await jobs.claim(queue);
    const answer = await jobs.report(jobId, 'fail', {
      epoch: job?.epoch,
      error: 'x'.repeat(100_000),
      retry_after_seconds: 3600,
    });
    assert.equal(answer.body.status, 'failed', answer.text);
    const row = await jobs.row(jobId);
    assert.deepEqual([row.retry_count, row.error_message?.length], [1, 4000]);
    assert.deepEqual(await jobs.claim(queue), []);
    await jobs.db.query(sql`UPDATE jobs.job_queue SET sort_at = now() WHERE job_id = ${jobId}`);
    const [again] = await jobs.claim(queue);
    assert.equal(again?.retry_count, 1);
    const last = await jobs.report(jobId, 'fail', { epoch: again?.epoch, error: 'again' });
    assert.equal(last.body.status, 'dead_letter');
    const attempts = await jobs.db.query<{ worker: string; status_to: string }>(sql`
      SELECT worker, status_to FROM jobs.job_attempts WHERE job_id = ${jobId} ORDER BY id`);
    assert.deepEqual(
      attempts.map(({ worker, status_to: to }) => [worker, to]),
      [
        ['pull:w1', 'failed'],
        ['pull:w1', 'dead_letter'],
      ],
    );
    assert.deepEqual(
      jobs.settled.filter(([name]) => name === queue),
      [
        [queue, 'failed', 'failed'],
        [queue, 'failed', 'dead_letter'],
      ],
    );
  });

  test('a failure that is not retryable makes the job dead at once', async () => {
    const { job_id: jobId, epoch } = await claimed();
    const answer = await jobs.report(jobId, 'fail', { epoch, error: 'no such article', retryable: false });
    assert.equal(answer.body.status, 'dead_letter');
  });

  test('a released job is due at once at no cost, but too many releases are a failure', async () => {
    const queue = await jobs.queue({ maxDeferrals: 1 });
    const jobId = await jobs.enqueue(queue);
    const [first] = await jobs.claim(queue);
    assert.equal((await jobs.report(jobId, 'release', { epoch: first?.epoch })).body.status, 'pending');
    const released = await jobs.row(jobId);
    assert.deepEqual([released.retry_count, released.deferrals], [0, 1]);
    const [second] = await jobs.claim(queue);
    assert.equal((await jobs.report(jobId, 'release', { epoch: second?.epoch })).body.status, 'failed');
    const row = await jobs.row(jobId);
    assert.deepEqual([row.retry_count, row.error_message], [1, 'released by its worker too often']);
  });

  test('a repeated report gets the same response and changes nothing', async () => {
    for (const [what, more, status] of [
      ['complete', { result: 1 }, 'completed'],
      ['fail', { error: 'x' }, 'failed'],
      ['release', {}, 'pending'],
    ] as const) {
      const { job_id: jobId, epoch } = await claimed();
      const first = await jobs.report(jobId, what, { epoch, ...more });
      assert.equal(first.body.status, status);
      const row = await jobs.row(jobId);
      const before = jobs.stale();
      const counted = jobs.settled.length;
      const again = await jobs.report(jobId, what, { epoch, ...more });
      assert.deepEqual([again.status, again.text], [200, first.text]);
      assert.deepEqual(await jobs.row(jobId), row);
      assert.deepEqual([jobs.stale(), jobs.settled.length], [before, counted]);
    }
  });

  test('of many concurrent reports about one attempt only one counts', async () => {
    const { job_id: jobId, epoch } = await claimed();
    const answers = await Promise.all(
      ['complete', 'fail', 'complete', 'fail', 'complete', 'fail'].map((what) =>
        jobs.report(jobId, what, { epoch, ...(what === 'fail' ? { error: 'x' } : {}) }),
      ),
    );
    const { status, retry_count: retries } = await jobs.row(jobId);
    assert.equal(retries, status === 'completed' ? 0 : 1);
    for (const answer of answers)
      if (answer.status === 200) assert.equal(answer.body.status, status);
      else assertError(answer, 409, 'SYS_JOBS_STALE');
    assert.equal(answers.filter((answer) => answer.status === 200).length, 3);
  });

  test('a report that differs from the settled outcome is stale', async () => {
    const { job_id: jobId, epoch } = await claimed();
    await jobs.report(jobId, 'fail', { epoch, error: 'x' });
    const before = jobs.stale();
    assertError(await jobs.report(jobId, 'complete', { epoch }), 409, 'SYS_JOBS_STALE');
    assert.equal(jobs.stale(), before + 1);
    assert.equal((await jobs.row(jobId)).status, 'failed');
  });

  test('completing a job that is then deleted succeeds once, and is stale after that', async () => {
    const { job_id: jobId, epoch } = await claimed({ keepCompleted: false });
    assert.equal((await jobs.report(jobId, 'complete', { epoch })).body.status, 'completed');
    const { message } = assertError(await jobs.report(jobId, 'complete', { epoch }), 409, 'SYS_JOBS_STALE');
    assert.match(message, /there is no such job/);
  });
});

describe('a stale token', () => {
  const words = [
    ['complete', { result: 'late' }],
    ['fail', { error: 'late' }],
    ['heartbeat', { progress: 'late' }],
    ['release', {}],
  ] as const;

  test('after a reap, a cancel, another claim or a manual requeue it is rejected, counted, and changes nothing', async () => {
    for (const how of ['reaped', 'claimed again', 'cancelled', 'requeued by hand']) {
      const { job_id: jobId, epoch, queue } = await claimed();
      if (how === 'cancelled') assert.equal((await jobs.act(jobId, 'cancel')).status, 200);
      else if (how === 'requeued by hand')
        await jobs.db.query(sql`
          UPDATE jobs.job_queue SET status = 'pending', retry_count = 0 WHERE job_id = ${jobId}`);
      else {
        await jobs.db.query(sql`UPDATE jobs.job_queue SET lease_until = now() WHERE job_id = ${jobId}`);
        await jobs.store.reap();
      }
      if (how === 'claimed again')
        await eventually(async () => assert.equal((await jobs.claim(queue, { worker: 'w2' })).length, 1));
      const row = await jobs.row(jobId);
      for (const [what, body] of words) {
        const before = jobs.stale();
        const { message } = assertError(
          await jobs.report(jobId, what, { epoch, ...body }),
          409,
          'SYS_JOBS_STALE',
        );
        assert.match(message, new RegExp(`status=${row.status}`));
        assert.doesNotMatch(
          message,
          new RegExp(`\\b${row.lease_epoch}\\b`),
          'the current epoch is not revealed',
        );
        assert.equal(jobs.stale(), before + 1, `${what} when ${how}`);
      }
      assert.deepEqual(await jobs.row(jobId), row, how);
    }
  });

  test('an unknown epoch and an unknown job are rejected', async () => {
    const { job_id: jobId, epoch } = await claimed();
    for (const [what, body] of words) {
      assertError(await jobs.report(jobId, what, { epoch: epoch + 1000, ...body }), 409, 'SYS_JOBS_STALE');
      const before = jobs.stale();
      assertError(await jobs.report(unknownId, what, { epoch, ...body }), 409, 'SYS_JOBS_STALE');
      assert.equal(jobs.stale(), before + 1, what);
    }
    assert.equal((await jobs.row(jobId)).status, 'running');
  });
});

describe('a heartbeat', () => {
  test('renews the lease and keeps the last progress', async () => {
    const { job_id: jobId, epoch } = await claimed({ timeoutMs: 3_600_000 }, { lease_seconds: 1 });
    const answer = await jobs.report(jobId, 'heartbeat', {
      epoch,
      lease_seconds: 600,
      progress: { done: 3 },
    });
    assert.equal(answer.status, 200, answer.text);
    const row = await jobs.row(jobId);
    assert.equal(new Date(answer.body.lease_until ?? '').getTime(), row.lease_until?.getTime());
    assert.ok((row.lease_until?.getTime() ?? 0) - (row.started_at?.getTime() ?? 0) >= 600_000);
    await jobs.report(jobId, 'heartbeat', { epoch });
    const later = await jobs.row(jobId);
    assert.deepEqual(later.progress, { done: 3 });
    assert.ok(
      (later.lease_until?.getTime() ?? 0) >= (row.lease_until?.getTime() ?? 0),
      'it is never shortened',
    );
  });

  test('does not extend the lease beyond the timeout, and is rejected after it; then the reaper ends the attempt', async () => {
    const { job_id: jobId, epoch } = await claimed({ timeoutMs: 60_000 }, { lease_seconds: 1 });
    const answer = await jobs.report(jobId, 'heartbeat', { epoch, lease_seconds: 3600 });
    assert.equal(answer.status, 200, answer.text);
    const row = await jobs.row(jobId);
    assert.equal((row.lease_until?.getTime() ?? 0) - (row.started_at?.getTime() ?? 0), 60_000);
    assert.equal(await jobs.store.reap(), 0);
    await jobs.db.query(sql`
      UPDATE jobs.job_queue SET started_at = started_at - interval '1 minute', lease_until = lease_until - interval '1 minute'
      WHERE job_id = ${jobId}`);
    const late = await jobs.row(jobId);
    const refused = await jobs.report(jobId, 'heartbeat', { epoch, lease_seconds: 3600, progress: 1 });
    assert.match(assertError(refused, 409, 'SYS_JOBS_STALE').message, /it timed out/);
    assert.deepEqual(await jobs.row(jobId), late);
    await reapOne();
    assertError(await jobs.report(jobId, 'fail', { epoch, error: 'late' }), 409, 'SYS_JOBS_STALE');
    assert.deepEqual(await reapedAs(jobId), {
      status: 'failed',
      retry_count: 1,
      lease_lost: false,
      error: 'timed out after 60000 ms',
      worker: 'pull:w1',
    });
  });

  test('that is missing costs the lease: before the timeout of the job the worker counts as lost', async () => {
    const { job_id: jobId } = await claimed({ timeoutMs: 60_000 }, { lease_seconds: 1 });
    await jobs.db.query(sql`
      UPDATE jobs.job_queue SET started_at = started_at - interval '1 second', lease_until = lease_until - interval '1 second'
      WHERE job_id = ${jobId}`);
    await reapOne();
    assert.deepEqual(await reapedAs(jobId), {
      status: 'failed',
      retry_count: 1,
      lease_lost: true,
      error: 'the worker was lost while it ran the job',
      worker: null,
    });
  });

  test('accepts progress up to its size limit', async () => {
    const { job_id: jobId, epoch } = await claimed();
    const fits = 'x'.repeat(65_534);
    assert.equal((await jobs.report(jobId, 'heartbeat', { epoch, progress: fits })).status, 200);
    const { details } = assertError(
      await jobs.report(jobId, 'heartbeat', { epoch, progress: `${fits}x` }),
      413,
      'SYS_JOBS_TOO_LARGE',
    );
    assert.equal(details[0]?.field, 'progress');
    assert.equal((await jobs.row(jobId)).progress, fits);
  });
});
