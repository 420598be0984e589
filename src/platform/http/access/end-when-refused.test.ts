import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { AppError } from '../../../kernel/errors.ts';
import { endWhenRefused } from './end-when-refused.ts';

const ended = new AppError('SYS_AUTH_TOKEN_EXPIRED', 'unauthenticated', 'the session has ended');
const away = new AppError('SYS_HTTP_UNAVAILABLE', 'unavailable', 'the database is unavailable');

function watched(everyMs: number, hasBegun = true) {
  const stream = new PassThrough();
  const listeners = new Set<() => void>();
  let answer: Error | null = null;
  let checks = 0;
  endWhenRefused(stream, {
    revocations: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    check: async () => {
      checks += 1;
      if (answer !== null) throw answer;
    },
    hasBegun: () => hasBegun,
    everyMs,
  });
  return {
    stream,
    answerWith: (error: Error | null) => (answer = error),
    revoke: () => listeners.forEach((listener) => listener()),
    listeners: () => listeners.size,
    checks: () => checks,
  };
}

test('a stream is checked from time to time, and ends when its caller is refused', async () => {
  const { stream, answerWith } = watched(1);
  const closed = once(stream, 'close');
  answerWith(ended);
  await closed;
});

test('a revocation checks it at once; one of somebody else, and an outage, do not end it', async () => {
  const { stream, answerWith, revoke, listeners, checks } = watched(3_600_000);
  revoke();
  answerWith(away);
  revoke();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([stream.destroyed, checks()], [false, 2]);
  const closed = once(stream, 'close');
  answerWith(ended);
  revoke();
  await closed;
  assert.equal(listeners(), 0);
});

test('one that has not sent anything yet ends with the refusal, which is answered', async () => {
  const { stream, answerWith, revoke } = watched(3_600_000, false);
  const failed = once(stream, 'error');
  answerWith(ended);
  revoke();
  assert.deepEqual(await failed, [ended]);
});
