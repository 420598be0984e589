import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AuthenticationError, NetworkError, UserError } from '@platformatic/kafka';
import { AppError } from '../../../kernel/errors.ts';
import { offered } from './api-version.ts';
import type { Link } from './connections.ts';
import { notSent } from './send-chunk.ts';

const thrownBy = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
};

test('after an error of the cluster the record can be retried', () => {
  const tooOld = { apis: new Map() } as unknown as Link;
  const troubles: readonly (readonly [unknown, string])[] = [
    [
      new NetworkError('failed', { cause: new AuthenticationError('SASL authentication failed.') }),
      'AUTHENTICATION_FAILED',
    ],
    [new NetworkError('failed', { cause: new UserError('Broker requires TLS.') }), 'TLS_FAILED'],
    [thrownBy(() => offered(tooOld, [{ key: 0, version: 9 }])), 'UNSUPPORTED'],
    [new AppError('SYS_BROKER_NO_PRODUCER_ID', 'internal', 'no right'), 'NO_PRODUCER_ID'],
    [new NetworkError('failed'), 'UNAVAILABLE'],
  ];
  for (const [error, code] of troubles) {
    const failure = notSent(error, undefined);
    assert.deepEqual(
      [failure.result, failure.fault, failure.retriable, failure.code],
      ['failed', 'cluster', true, code],
    );
  }
});

test('an aborted publish is reported as aborted', () => {
  const failure = notSent(new NetworkError('failed'), AbortSignal.abort());
  assert.deepEqual([failure.retriable, failure.code], [true, 'ABORTED']);
});

test('a user who may not write to any topic is refused, and the fault is not that of the record', () => {
  const error = new AppError('SYS_BROKER_CLUSTER_AUTHORIZATION_FAILED', 'internal', 'no right');
  const { fault, retriable, code } = notSent(error, undefined);
  assert.deepEqual([fault, retriable, code], ['topic', false, 'CLUSTER_AUTHORIZATION_FAILED']);
});
