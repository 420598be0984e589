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

test('trouble with the whole cluster leaves the record fit to be sent later', () => {
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
    assert.deepEqual([failure.result, failure.retriable, failure.code], ['failed', true, code]);
  }
});

test('a publish that was aborted says so, whatever it failed with', () => {
  const failure = notSent(new NetworkError('failed'), AbortSignal.abort());
  assert.deepEqual([failure.retriable, failure.code], [true, 'ABORTED']);
});
