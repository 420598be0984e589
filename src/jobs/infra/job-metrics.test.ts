import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '../../kernel/clock.ts';
import { createLogger } from '../../platform/telemetry/logger.ts';
import { createMetrics } from '../../platform/telemetry/metrics.ts';
import type { JobEnd } from '../usecase/ports.ts';
import { createJobMetrics, outcomeOf } from './job-metrics.ts';
import { createQueueLabels } from './queue-labels.ts';

const clock: Clock = { now: () => new Date('2026-05-01T10:00:02Z'), monotonicMs: () => 0 };

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
  const counts = createJobMetrics(metrics, logger, { labels: createQueueLabels(['mail'], limit), clock });
  const valueOf = async (name: string): Promise<number | undefined> => {
    const found = (await metrics.render()).split('\n').find((line) => line.startsWith(`${name} `));
    return found === undefined ? undefined : Number(found.split(' ').at(-1));
  };
  return { counts, lines, valueOf };
}

const lease = { owner: 'worker', epoch: 1n, endsAtMs: 0 };
const job = { jobId: 'job-1', lease, retryCount: 2 };
const startedAt = new Date('2026-05-01T10:00:00Z');
const failed: JobEnd = { job, startedAt, end: 'failed', error: 'no', isRetryable: true, retryAfterMs: null };
const completed: JobEnd = { job, startedAt, end: 'completed', result: null };
const deferred: JobEnd = { job, startedAt: null, end: 'deferred', delayMs: 1, reason: 'busy' };

test('an end is counted by what the job has become', () => {
  assert.equal(outcomeOf(completed, 'completed'), 'completed');
  assert.equal(outcomeOf(failed, 'failed'), 'failed');
  assert.equal(outcomeOf(failed, 'dead_letter'), 'dead_letter');
  assert.equal(outcomeOf(deferred, 'pending'), 'deferred');
  assert.equal(outcomeOf(deferred, 'failed'), 'deferred');
  assert.equal(outcomeOf(deferred, 'dead_letter'), 'dead_letter');
  assert.equal(outcomeOf(completed, null), 'stale');
});

test('a job that has died by itself is counted, and logged with what a person needs', async () => {
  const { counts, lines, valueOf } = open();
  counts.ended('mail', { ...failed, job }, 'dead_letter');
  assert.equal(await valueOf('jobs_dead_letter_total{queue="mail"}'), 1);
  assert.equal(await valueOf('jobs_finished_total{queue="mail",outcome="dead_letter"}'), 1);
  const [line] = lines;
  assert.match(String(line?.['msg']), /dead_letter/);
  assert.deepEqual(
    [line?.['job_id'], line?.['queue'], line?.['error'], line?.['retry_count'], line?.['level']],
    ['job-1', 'mail', 'no', 3, 'warn'],
  );
});

test('what goes on, has gone well or was somebody else’s is no dead letter', async () => {
  const { counts, lines, valueOf } = open();
  counts.ended('mail', completed, 'completed');
  counts.ended('mail', failed, 'failed');
  counts.ended('mail', deferred, 'pending');
  counts.ended('mail', failed, null);
  assert.deepEqual([await valueOf('jobs_dead_letter_total{queue="mail"}'), lines], [undefined, []]);
  assert.equal(await valueOf('jobs_duration_seconds_count{queue="mail"}'), 3);
  assert.equal(await valueOf('jobs_duration_seconds_sum{queue="mail"}'), 6);
});

test('jobs are counted as they are added, one or many', async () => {
  const { counts, valueOf } = open();
  counts.enqueued('mail');
  counts.enqueued('mail', 500);
  assert.equal(await valueOf('jobs_enqueued_total{queue="mail"}'), 501);
});

test('names without end do not make series without end, and a configured queue keeps its own', async () => {
  const { counts, valueOf } = open(3);
  for (let n = 1; n <= 50; n += 1) counts.enqueued(`made-up-${n}`);
  counts.enqueued('mail');
  assert.equal(await valueOf('jobs_enqueued_total{queue="made-up-2"}'), 1);
  assert.equal(await valueOf('jobs_enqueued_total{queue="made-up-3"}'), undefined);
  assert.equal(await valueOf('jobs_enqueued_total{queue="other"}'), 48);
  assert.equal(await valueOf('jobs_enqueued_total{queue="mail"}'), 1);
});

test('a text of any length from outside does not flood the log', () => {
  const { counts, lines } = open();
  counts.deadLetter({ jobId: 'job-1', queue: 'mail', error: 'x'.repeat(1_000_000), retryCount: null });
  assert.equal(String(lines[0]?.['error']).length, 1000);
});

test('an attempt that was lost with its worker is counted as what the reaper has made of it', async () => {
  const { counts, lines, valueOf } = open();
  const lost = { jobId: 'job-1', queue: 'mail', error: 'the worker was lost', retryCount: 3 };
  counts.lost({ ...lost, status: 'failed' });
  counts.lost({ ...lost, status: 'dead_letter' });
  assert.equal(await valueOf('jobs_finished_total{queue="mail",outcome="failed"}'), 1);
  assert.equal(await valueOf('jobs_finished_total{queue="mail",outcome="dead_letter"}'), 1);
  assert.equal(await valueOf('jobs_dead_letter_total{queue="mail"}'), 1);
  assert.equal(await valueOf('jobs_duration_seconds_count{queue="mail"}'), undefined);
  assert.deepEqual([lines.length, lines[0]?.['retry_count']], [1, 3]);
});
