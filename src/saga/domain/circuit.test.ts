import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extendStreak, noStreak, type Streak } from '../../kernel/targets/circuit.ts';
import { contactOf, isOutage } from './circuit.ts';
import { judgeCallError, judgeGrpcAnswer, judgeHttpAnswer, judgeMappingError } from './judge-answer.ts';

const now = new Date(0);
const http = (status: number) =>
  contactOf(judgeHttpAnswer({ status, headers: {}, isBodyCut: false, body: Buffer.from('{}') }, now));
const grpc = (code: number, trailers = {}) =>
  contactOf(judgeGrpcAnswer({ code, details: '', trailers, message: {} }, now));

function streakOf(...failures: readonly (readonly [sagaId: string, atMs: number])[]): Streak<string> {
  return failures.reduce<Streak<string>>(
    (streak, [sagaId, atMs]) => extendStreak(streak, sagaId, atMs),
    noStreak,
  );
}

test('no connection, no answer and server errors say that a service is down; refusals and defects that it is up', () => {
  assert.deepEqual([500, 502, 503, 504].map(http), ['down', 'down', 'down', 'down']);
  assert.deepEqual([200, 202, 302, 400, 404, 408, 409, 422, 429].map(http), Array(9).fill('up'));
  assert.deepEqual(
    [2, 4, 13, 14].map((code) => grpc(code)),
    ['down', 'down', 'down', 'down'],
  );
  assert.deepEqual(
    [0, 3, 5, 8, 9].map((code) => grpc(code)),
    ['up', 'up', 'up', 'up', 'up'],
  );
  assert.equal(grpc(14, { 'saga-result': 'working' }), 'up');
  assert.equal(contactOf(judgeCallError(new Error('timeout'))), 'down');
  assert.equal(contactOf(judgeMappingError('no path')), 'nothing');
});

test('five failures of three sagas are an outage, at once', () => {
  const four = [
    ['a', 0],
    ['b', 0],
    ['c', 0],
    ['a', 0],
  ] as const;
  assert.equal(isOutage(streakOf(...four), 0), false);
  assert.equal(isOutage(streakOf(...four, ['b', 1]), 1), true);
});

test('one saga alone shows an outage only with five failures over a minute', () => {
  const failures = [0, 1000, 3000, 7000, 15_000].map((atMs) => ['a', atMs] as const);
  assert.equal(isOutage(streakOf(...failures), 15_000), false);
  assert.equal(isOutage(streakOf(...failures, ['a', 60_000]), 60_000), true);
  assert.equal(isOutage(streakOf(['a', 0], ['a', 90_000]), 90_000), false, 'two are not enough');
});
