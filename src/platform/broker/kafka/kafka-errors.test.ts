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
import { fetchErrorKind, isConnectionTrouble, protocolCode, responseOf, toAppError } from './kafka-errors.ts';

test('a wrong password is found under every layer of "cannot connect"', () => {
  const refused = new AuthenticationError('SASL authentication failed.');
  const buried = new MultipleErrors('Cannot connect to any broker.', [
    new NetworkError('Connection to a:1 failed.', { cause: new Error('ECONNREFUSED') }),
    new NetworkError('Connection to b:1 failed.', { cause: refused }),
  ]);
  const error = toAppError(buried);
  assert.deepEqual([error.code, error.kind], ['SYS_BROKER_AUTHENTICATION_FAILED', 'internal']);
});

test('a broker that speaks TLS, or whose certificate is not trusted, is named as that', () => {
  const notTrusted = Object.assign(new Error('self-signed certificate'), {
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  });
  for (const cause of [new UserError('Broker requires TLS.'), notTrusted])
    assert.equal(toAppError(new NetworkError('failed', { cause })).code, 'SYS_BROKER_TLS_FAILED');
});

test('anything else means that the broker cannot be reached, with all that is known', () => {
  const error = toAppError(
    new NetworkError('Connection to a:1 failed.', { cause: new Error('ECONNREFUSED') }),
  );
  assert.deepEqual([error.code, error.kind], ['SYS_BROKER_UNAVAILABLE', 'unavailable']);
  assert.match(error.message, /Connection to a:1 failed.*ECONNREFUSED/);
});

test('an error of ours stays what it is', () => {
  const ours = new AppError('SYS_BROKER_TIMEOUT', 'unavailable', 'late');
  assert.equal(toAppError(new AggregateError([ours])), ours);
});

test('a response with errors in it is still the response', async () => {
  const response = { errorCode: 3 };
  const error = new ResponseError(1, 17, { '/': [3, null] }, response);
  assert.equal(await responseOf(Promise.reject(error)), response);
  await assert.rejects(responseOf(Promise.reject(new Error('other'))), /other/);
});

test('an answer that cannot be read is not trouble with the connection', () => {
  assert.equal(isConnectionTrouble(new RangeError('out of bounds')), false);
  for (const error of [
    new NetworkError('closed'),
    new TimeoutError('late'),
    new AppError('X', 'unavailable', 'x'),
  ])
    assert.equal(isConnectionTrouble(error), true);
});

test('the codes of a fetch say what to do next', () => {
  const kinds = [1, 3, 100, 6, 29, 56].map((code) => fetchErrorKind(protocolCode(code)));
  assert.deepEqual(kinds, ['out_of_range', 'gone', 'gone', 'moved', 'denied', 'unavailable']);
});
