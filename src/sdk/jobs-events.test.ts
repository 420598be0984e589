import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineOf } from './jobs-events.ts';

test('a reaped job that is dead is logged as a dead_letter', () => {
  const died = { queue: 'mail', jobId: '17', outcome: 'dead_letter', error: 'the worker was lost' } as const;
  const line = 'job 17 of mail is a dead_letter: the worker was lost';
  assert.equal(lineOf({ type: 'reaped', ...died }), line);
  assert.equal(lineOf({ type: 'finished', seconds: 1, ...died }), line);
});

test('a released job that will be retried is logged, and not as a dead letter', () => {
  const line = lineOf({
    type: 'reaped',
    queue: 'mail',
    jobId: '17',
    outcome: 'failed',
    error: 'the worker was lost',
  });
  assert.equal(line, 'retrying job 17 of mail: the worker was lost');
});
