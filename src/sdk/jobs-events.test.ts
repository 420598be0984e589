import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineOf } from './jobs-events.ts';

test('a job that died with its worker is named in a line with the word dead_letter, like any other', () => {
  const died = { queue: 'mail', jobId: '17', outcome: 'dead_letter', error: 'the worker was lost' } as const;
  const line = 'job 17 of mail is a dead_letter: the worker was lost';
  assert.equal(lineOf({ type: 'reaped', ...died }), line);
  assert.equal(lineOf({ type: 'finished', seconds: 1, ...died }), line);
});

test('a job that lost its worker and is tried again is named too, and is no dead letter', () => {
  const line = lineOf({
    type: 'reaped',
    queue: 'mail',
    jobId: '17',
    outcome: 'failed',
    error: 'the worker was lost',
  });
  assert.equal(line, 'an attempt of job 17 of mail was ended, and it is tried again: the worker was lost');
});
