import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  AuthenticationError,
  MultipleErrors,
  NetworkError,
  ResponseError,
  TimeoutError,
  UserError,
} from '@platformatic/kafka';
import { AppError } from '../../../kernel/errors.ts';
import {
  faultBeforeSend,
  faultOf,
  fetchErrorKind,
  isConnectionTrouble,
  protocolCode,
  responseOf,
  toAppError,
} from './kafka-errors.ts';

test('a wrong password is found under every layer of "cannot connect"', () => {
  const refused = new AuthenticationError('SASL authentication failed.');
  const buried = new MultipleErrors('Cannot connect to any broker.', [
    new NetworkError('Connection to a:1 failed.', { cause: new Error('ECONNREFUSED') }),
    new NetworkError('Connection to b:1 failed.', { cause: refused }),
  ]);
  const error = toAppError(buried);
  assert.deepEqual([error.code, error.kind], ['SYS_BROKER_AUTHENTICATION_FAILED', 'internal']);
});

test('a broker that requires TLS, or has an untrusted certificate, has an error of its own', () => {
  const notTrusted = Object.assign(new Error('self-signed certificate'), {
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  });
  for (const cause of [new UserError('Broker requires TLS.'), notTrusted])
    assert.equal(toAppError(new NetworkError('failed', { cause })).code, 'SYS_BROKER_TLS_FAILED');
});

test('any other error means that the broker is unavailable, with all causes', () => {
  const error = toAppError(
    new NetworkError('Connection to a:1 failed.', { cause: new Error('ECONNREFUSED') }),
  );
  assert.deepEqual([error.code, error.kind], ['SYS_BROKER_UNAVAILABLE', 'unavailable']);
  assert.match(error.message, /Connection to a:1 failed.*ECONNREFUSED/);
});

test('an AppError is kept', () => {
  const ours = new AppError('SYS_BROKER_TIMEOUT', 'unavailable', 'late');
  assert.equal(toAppError(new AggregateError([ours])), ours);
});

test('a response with error codes is returned', async () => {
  const response = { errorCode: 3 };
  const error = new ResponseError(1, 17, { '/': [3, null] }, response);
  assert.equal(await responseOf(Promise.reject(error)), response);
  await assert.rejects(responseOf(Promise.reject(new Error('other'))), /other/);
});

test('a response that cannot be parsed is not a connection error', () => {
  assert.equal(isConnectionTrouble(new RangeError('out of bounds')), false);
  for (const error of [
    new NetworkError('closed'),
    new TimeoutError('late'),
    new AppError('X', 'unavailable', 'x'),
  ])
    assert.equal(isConnectionTrouble(error), true);
});

test('fetch error codes map to what the reader does next', () => {
  const kinds = [1, 3, 100, 6, 29, 56].map((code) => fetchErrorKind(protocolCode(code)));
  assert.deepEqual(kinds, ['out_of_range', 'gone', 'gone', 'moved', 'denied', 'unavailable']);
});

test('connection, leader, session and quorum errors are faults of the cluster, a missing topic or right of the topic, all others of the record', () => {
  const blamed = {
    cluster: [
      'NETWORK_EXCEPTION',
      'NOT_LEADER_OR_FOLLOWER',
      'LEADER_NOT_AVAILABLE',
      'OUT_OF_ORDER_SEQUENCE_NUMBER',
      'NOT_ENOUGH_REPLICAS',
    ],
    topic: ['UNKNOWN_TOPIC_OR_PARTITION', 'TOPIC_AUTHORIZATION_FAILED', 'CLUSTER_AUTHORIZATION_FAILED'],
    record: [
      'MESSAGE_TOO_LARGE',
      'INVALID_RECORD',
      'INVALID_TIMESTAMP',
      'CORRUPT_MESSAGE',
      'POLICY_VIOLATION',
      'KAFKA_ERROR_9999',
    ],
  } as const;
  for (const [fault, codes] of Object.entries(blamed))
    for (const code of codes) {
      assert.equal(faultOf(code), fault, code);
      assert.equal(faultBeforeSend(code), fault === 'topic' ? 'topic' : 'cluster', code);
    }
});
