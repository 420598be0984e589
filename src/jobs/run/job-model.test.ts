import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  endAttempt,
  sortAt,
  startAttempt,
  type AttemptEnd,
  type Limits,
} from '../../../tests/support/job-model.ts';
import { isTerminal, type JobState } from '../domain/job.ts';

const limits: Limits = { maxDeferrals: 5, backoff: { initialMs: 2000, maxMs: 300_000, jitter: 0.1 } };
const fresh: JobState = { status: 'pending', retryCount: 0, maxRetries: 3, deferrals: 0, resolution: null };
const ends: fc.Arbitrary<AttemptEnd> = fc.oneof(
  fc.constant<AttemptEnd>({ outcome: 'completed' }),
  fc.record({ outcome: fc.constant('failed' as const), isRetryable: fc.boolean() }),
  fc.record({ outcome: fc.constant('deferred' as const), delayMs: fc.nat(60_000) }),
  fc.constant<AttemptEnd>({ outcome: 'lease_expired' }),
);

test('a job is dead after max_retries failures', () => {
  let job = fresh;
  const statuses: string[] = [];
  for (let i = 0; i < 3; i += 1) {
    const running = startAttempt(job);
    assert.ok(running);
    job = endAttempt(running, { outcome: 'failed', isRetryable: true }, limits)?.job ?? job;
    statuses.push(`${job.status} ${job.retryCount}`);
  }
  assert.deepEqual(statuses, ['failed 1', 'failed 2', 'dead_letter 3']);
});

test('every job ends within its limits of failures and deferrals', () => {
  fc.assert(
    fc.property(
      fc.array(ends, { minLength: 60, maxLength: 60 }),
      fc.integer({ min: 1, max: 5 }),
      (all, maxRetries) => {
        let job: JobState = { ...fresh, maxRetries };
        let attempts = 0;
        for (const end of all) {
          const running = startAttempt(job);
          if (running === null) break;
          attempts += 1;
          job = endAttempt(running, end, limits)?.job ?? assert.fail();
          assert.ok(job.retryCount <= maxRetries);
        }
        assert.ok(isTerminal(job.status));
        assert.ok(attempts <= maxRetries + limits.maxDeferrals);
      },
    ),
  );
});

test('a failure that is not retryable makes the job dead at once and is counted', () => {
  const running = startAttempt(fresh) ?? assert.fail();
  const ended = endAttempt(running, { outcome: 'failed', isRetryable: false }, limits);
  assert.deepEqual([ended?.job.status, ended?.job.retryCount, ended?.dueInMs], ['dead_letter', 1, null]);
});

test('a deferral costs no retry and restores the status', () => {
  for (const retryCount of [0, 1]) {
    const running = startAttempt({ ...fresh, retryCount }) ?? assert.fail();
    const ended = endAttempt(running, { outcome: 'deferred', delayMs: 1000 }, limits);
    assert.deepEqual(
      [ended?.job.status, ended?.job.retryCount, ended?.dueInMs],
      [retryCount === 0 ? 'pending' : 'failed', retryCount, 1000],
    );
  }
});

test('a retry-after delay applies if it is longer than the backoff', () => {
  const running = startAttempt(fresh) ?? assert.fail();
  const late = endAttempt(running, { outcome: 'failed', isRetryable: true, retryAfterMs: 60_000 }, limits);
  assert.equal(late?.dueInMs, 60_000);
  const early = endAttempt(
    running,
    { outcome: 'failed', isRetryable: true, retryAfterMs: 1 },
    limits,
    () => 0.5,
  );
  assert.equal(early?.dueInMs, 2000);
});

test('priority moves due jobs forward by minutes, and delayed jobs not at all', () => {
  const writtenAt = new Date('2026-01-01T12:00:00Z');
  const place = (runAt: string): string =>
    sortAt({ runAt: new Date(runAt), writtenAt, priority: 5 }).toISOString();
  assert.equal(place('2026-01-01T12:00:00Z'), '2026-01-01T11:55:00.000Z');
  assert.equal(place('2026-01-01T12:01:00Z'), '2026-01-01T12:01:00.000Z');
  assert.equal(place('1999-01-01T00:00:00Z'), '2026-01-01T11:55:00.000Z', 'a time in the past counts as now');
});
