import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cancel, discard, requeue, type JobState } from './job.ts';

const fresh: JobState = { status: 'pending', retryCount: 0, maxRetries: 3, deferrals: 0, resolution: null };

test('dead jobs can be requeued, and discarded once; unfinished jobs can be cancelled', () => {
  const dead: JobState = { ...fresh, status: 'dead_letter', retryCount: 3, deferrals: 2 };
  assert.deepEqual(requeue(dead), fresh);
  const discarded = discard(dead) ?? assert.fail();
  assert.equal(discard(discarded), null);
  assert.deepEqual(requeue(discarded), fresh);
  assert.equal(cancel(dead), null);
  assert.equal(cancel({ ...fresh, status: 'running' })?.resolution, 'cancelled');
  assert.equal(requeue(fresh), null);
});
