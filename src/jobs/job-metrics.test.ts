import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../platform/telemetry/logger.ts';
import { createMetrics } from '../platform/telemetry/metrics.ts';
import { createJobMetrics, outcomeOf } from './job-metrics.ts';
import type { Settlement } from './settle-jobs.ts';

function open(limit = 1000) {
  const metrics = createMetrics();
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({
    service: 'redrive',
    version: '0.1.0',
    environment: 'test',
    level: 'info',
    stream: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const counts = createJobMetrics(metrics, logger, ['mail'], limit);
  const valueOf = async (name: string): Promise<number | undefined> => {
    const found = (await metrics.render()).split('\n').find((line) => line.startsWith(`${name} `));
    return found === undefined ? undefined : Number(found.split(' ').at(-1));
  };
  return { counts, lines, valueOf };
}

const lease = { owner: 'worker', epoch: 1n, endsAtMs: 0 };
const job = { jobId: 'job-1', lease, retryCount: 2 };
const ran = { waitedMs: 5, ms: 2000 };
const failed: Settlement = {
  job,
  ran,
  outcome: 'failed',
  error: 'no',
  isRetryable: true,
  retryAfterMs: null,
};
const completed: Settlement = { job, ran, outcome: 'completed', result: null };
const deferred: Settlement = { job, ran: null, outcome: 'deferred', delayMs: 1, reason: 'busy' };

test('a settlement is counted by the new status of the job', () => {
  assert.equal(outcomeOf(completed, 'completed'), 'completed');
  assert.equal(outcomeOf(failed, 'failed'), 'failed');
  assert.equal(outcomeOf(failed, 'dead_letter'), 'dead_letter');
  assert.equal(outcomeOf(deferred, 'pending'), 'deferred');
  assert.equal(outcomeOf(deferred, 'failed'), 'deferred');
  assert.equal(outcomeOf(deferred, 'dead_letter'), 'dead_letter');
  assert.equal(outcomeOf(completed, null), 'stale');
});

test('a dead letter is counted, and logged with its details', async () => {
  const { counts, lines, valueOf } = open();
  counts.settled('mail', { ...failed, job }, 'dead_letter');
  assert.equal(await valueOf('jobs_dead_letter_total{queue="mail"}'), 1);
  assert.equal(await valueOf('jobs_finished_total{queue="mail",outcome="dead_letter"}'), 1);
  const [line] = lines;
  assert.match(String(line?.['msg']), /dead_letter/);
  assert.deepEqual(
    [line?.['job_id'], line?.['queue'], line?.['error'], line?.['retry_count'], line?.['level']],
    ['job-1', 'mail', 'no', 3, 'warn'],
  );
});

test('completed, retried, deferred and stale jobs are not counted as dead letters', async () => {
  const { counts, lines, valueOf } = open();
  counts.settled('mail', completed, 'completed');
  counts.settled('mail', failed, 'failed');
  counts.settled('mail', deferred, 'pending');
  counts.settled('mail', failed, null);
  assert.deepEqual([await valueOf('jobs_dead_letter_total{queue="mail"}'), lines], [0, []]);
  assert.equal(await valueOf('jobs_duration_seconds_count{queue="mail"}'), 3);
  assert.equal(await valueOf('jobs_duration_seconds_sum{queue="mail"}'), 6);
});

test('jobs are counted as they are added', async () => {
  const { counts, valueOf } = open();
  counts.enqueued('mail');
  counts.enqueued('mail');
  assert.equal(await valueOf('jobs_enqueued_total{queue="mail"}'), 2);
});

test('the number of queue labels is limited, and configured queues keep theirs', async () => {
  const { counts, valueOf } = open(3);
  for (let n = 1; n <= 50; n += 1) counts.enqueued(`made-up-${n}`);
  counts.enqueued('mail');
  assert.equal(await valueOf('jobs_enqueued_total{queue="made-up-2"}'), 1);
  assert.equal(await valueOf('jobs_enqueued_total{queue="made-up-3"}'), undefined);
  assert.equal(await valueOf('jobs_enqueued_total{queue="other"}'), 48);
  assert.equal(await valueOf('jobs_enqueued_total{queue="mail"}'), 1);
});

test('long errors are truncated in the log', () => {
  const { counts, lines } = open();
  counts.settled('mail', { ...failed, error: 'x'.repeat(1_000_000) }, 'dead_letter');
  assert.equal(String(lines[0]?.['error']).length, 1000);
});

test('a reaped attempt is counted by its new status', async () => {
  const { counts, lines, valueOf } = open();
  const lost = { jobId: 'job-1', queue: 'mail', error: 'the worker was lost', retryCount: 3 };
  counts.reaped({ ...lost, status: 'failed' });
  counts.reaped({ ...lost, status: 'dead_letter' });
  assert.equal(await valueOf('jobs_finished_total{queue="mail",outcome="failed"}'), 1);
  assert.equal(await valueOf('jobs_finished_total{queue="mail",outcome="dead_letter"}'), 1);
  assert.equal(await valueOf('jobs_dead_letter_total{queue="mail"}'), 1);
  assert.equal(await valueOf('jobs_duration_seconds_count{queue="mail"}'), 0);
  assert.deepEqual([lines.length, lines[0]?.['retry_count']], [1, 3]);
});

test('how long a job had been due is counted when it is claimed, unless that is forever', async () => {
  const { counts, valueOf } = open();
  counts.claimed('mail', [{ dueForMs: 20_000 }, { dueForMs: 45_000 }, { dueForMs: Infinity }]);
  assert.equal(await valueOf('jobs_start_delay_seconds_count{queue="mail"}'), 2);
  assert.equal(await valueOf('jobs_start_delay_seconds_bucket{le="30",queue="mail"}'), 1);
  assert.equal(await valueOf('jobs_start_delay_seconds_sum{queue="mail"}'), 65);
});
