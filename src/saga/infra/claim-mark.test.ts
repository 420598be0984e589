import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClaimMark } from './claim-mark.ts';

test('while claims are full the next one begins where the last one ended, and once a second from the beginning', () => {
  let ms = 0;
  const mark = createClaimMark({ now: () => new Date(ms), monotonicMs: () => ms });
  const last = new Date(5);
  assert.equal(mark.from(), null);
  mark.note(last);
  assert.equal(mark.from(), last);
  ms = 999;
  assert.equal(mark.from(), last);
  ms = 1000;
  assert.equal(mark.from(), null, 'it looks back');
  assert.equal(mark.from(), last);
  mark.note(undefined);
  assert.equal(mark.from(), null, 'the last one was not full');
});
