import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { localPrincipal } from '../kernel/access/principal.ts';
import { AppError } from '../kernel/errors.ts';
import { limitFailures } from './failed-attempts.ts';

const wrong = new AppError('SYS_AUTH_TOKEN_INVALID', 'unauthenticated', 'wrong');
const missing = new AppError('SYS_AUTH_MISSING_TOKEN', 'unauthenticated', 'missing');

function limited() {
  let answer: AppError | null = wrong;
  const authenticate = limitFailures(() => {
    if (answer !== null) throw answer;
    return localPrincipal;
  });
  return {
    fail: (error: AppError | null) => (answer = error),
    codeFrom: async (ip: string): Promise<string> => {
      try {
        await authenticate({ ip, raw: { socket: {} } } as FastifyRequest, true);
        return 'ok';
      } catch (error) {
        assert.ok(error instanceof AppError);
        return error.code;
      }
    },
  };
}

test('the eleventh wrong token of an address within a minute gets 429, and a valid one still works', async () => {
  const { codeFrom, fail } = limited();
  for (let i = 0; i < 10; i += 1) assert.equal(await codeFrom('192.0.2.1'), wrong.code);
  assert.equal(await codeFrom('192.0.2.1'), 'SYS_RATE_LIMIT_EXCEEDED');
  assert.equal(await codeFrom('192.0.2.2'), wrong.code);
  fail(null);
  assert.equal(await codeFrom('192.0.2.1'), 'ok');
});

test('addresses of one IPv6 network count together', async () => {
  const { codeFrom } = limited();
  for (let i = 0; i < 10; i += 1) await codeFrom(`2001:db8:0:1::${i}`);
  assert.equal(await codeFrom('2001:db8:0:1:ffff::1'), 'SYS_RATE_LIMIT_EXCEEDED');
  assert.equal(await codeFrom('2001:db8:0:2::1'), wrong.code);
  assert.equal(await codeFrom('2001:db8::1'), wrong.code);
});

test('requests without a token do not count', async () => {
  const { codeFrom, fail } = limited();
  fail(missing);
  for (let i = 0; i < 20; i += 1) assert.equal(await codeFrom('192.0.2.1'), missing.code);
});
