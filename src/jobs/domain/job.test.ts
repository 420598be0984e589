import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  cancel,
  discard,
  endAttempt,
  isTerminal,
  requeue,
  sortAt,
  startAttempt,
  type AttemptEnd,
  type JobState,
  type Limits,
} from './job.ts';

const limits: Limits = { maxDeferrals: 5, backoff: { initialMs: 2000, maxMs: 300_000, jitter: 0.1 } };
const fresh: JobState = { status: 'pending', retryCount: 0, maxRetries: 3, deferrals: 0, resolution: null };
const ends: fc.Arbitrary<AttemptEnd> = fc.oneof(
  fc.constant<AttemptEnd>({ end: 'completed' }),
  fc.record({ end: fc.constant('failed' as const), isRetryable: fc.boolean() }),
  fc.record({ end: fc.constant('deferred' as const), delayMs: fc.nat(60_000) }),
  fc.constant<AttemptEnd>({ end: 'lease_over' }),
);

test('a job fails max_retries times and is dead, as the seed says', () => {
  let job = fresh;
  const statuses: string[] = [];
  for (let i = 0; i < 3; i += 1) {
    const running = startAttempt(job);
    assert.ok(running);
    job = endAttempt(running, { end: 'failed', isRetryable: true }, limits)?.job ?? job;
    statuses.push(`${job.status} ${job.retryCount}`);
  }
  assert.deepEqual(statuses, ['failed 1', 'failed 2', 'dead_letter 3']);
});

test('whatever happens, a job ends within its budget of failures and deferrals', () => {
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

test('what is not retryable is dead at once, and keeps the count of its failures', () => {
  const running = startAttempt(fresh) ?? assert.fail();
  const ended = endAttempt(running, { end: 'failed', isRetryable: false }, limits);
  assert.deepEqual([ended?.job.status, ended?.job.retryCount, ended?.dueInMs], ['dead_letter', 1, null]);
});

test('a deferral costs no retry and returns the job to what it was', () => {
  for (const retryCount of [0, 1]) {
    const running = startAttempt({ ...fresh, retryCount }) ?? assert.fail();
    const ended = endAttempt(running, { end: 'deferred', delayMs: 1000 }, limits);
    assert.deepEqual(
      [ended?.job.status, ended?.job.retryCount, ended?.dueInMs],
      [retryCount === 0 ? 'pending' : 'failed', retryCount, 1000],
    );
  }
});

test('a wish to come later is kept, and never shortens the backoff', () => {
  const running = startAttempt(fresh) ?? assert.fail();
  const late = endAttempt(running, { end: 'failed', isRetryable: true, retryAfterMs: 60_000 }, limits);
  assert.equal(late?.dueInMs, 60_000);
  const early = endAttempt(running, { end: 'failed', isRetryable: true, retryAfterMs: 1 }, limits, () => 0.5);
  assert.equal(early?.dueInMs, 2000);
});

test('a person requeues what is dead, discards it once, and cancels what is not over', () => {
  const dead: JobState = { ...fresh, status: 'dead_letter', retryCount: 3, deferrals: 2 };
  assert.deepEqual(requeue(dead), fresh);
  const discarded = discard(dead) ?? assert.fail();
  assert.equal(discard(discarded), null);
  assert.deepEqual(requeue(discarded), fresh);
  assert.equal(cancel(dead), null);
  assert.equal(cancel({ ...fresh, status: 'running' })?.resolution, 'cancelled');
  assert.equal(requeue(fresh), null);
});

test('priority moves what is due forward by minutes, and never what is delayed', () => {
  const writtenAt = new Date('2026-01-01T12:00:00Z');
  const place = (runAt: string): string =>
    sortAt({ runAt: new Date(runAt), writtenAt, priority: 5 }).toISOString();
  assert.equal(place('2026-01-01T12:00:00Z'), '2026-01-01T11:55:00.000Z');
  assert.equal(place('2026-01-01T12:01:00Z'), '2026-01-01T12:01:00.000Z');
  assert.equal(place('1999-01-01T00:00:00Z'), '2026-01-01T11:55:00.000Z', 'a time that is over is now');
});
