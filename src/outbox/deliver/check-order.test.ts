import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../kernel/clock.ts';
import type { ClaimedOrder } from './claim-orders.ts';
import type { OpenDestination, StatusAnswer } from './senders/port.ts';
import type { AttemptResult } from './attempt.ts';
import { checkResend } from './check-order.ts';
import { sent } from '../../../tests/support/test-gates.ts';

/** Stored before the limit was introduced, and sent once. */
function tooLarge(inDoubt: boolean): ClaimedOrder {
  return {
    id: 1n,
    idempotencyKey: 'key-0001',
    request: '',
    orderingKey: null,
    traceId: null,
    traceparent: null,
    destination: 'broker',
    lease: { owner: 'w', epoch: 1n, endsAtMs: systemClock.monotonicMs() + 60_000 },
    retryCount: 1,
    ageMs: 0,
    claimedAtMs: systemClock.monotonicMs(),
    createdForMs: 0,
    inDoubt,
    was: { status: 'failed', firstSentAt: '2026-05-01T10:00:00Z' },
  };
}

async function check(order: ClaimedOrder, answer: StatusAnswer | null): Promise<AttemptResult['settlement']> {
  const destination: OpenDestination = {
    name: 'broker',
    type: 'http',
    isInternal: false,
    // A second send would be safe, if the request could be read.
    policy: {
      idempotency: 'consumer',
      dedupWindowMs: 60_000,
      maxAgeMs: 60_000,
      retryMax: 5,
      backoff: { initialMs: 1, maxMs: 1, jitter: 0 },
    },
    maxInFlight: 8,
    hasStatusUrl: false,
    timeoutMs: 1000,
    send: () => assert.fail('it cannot be sent'),
    askStatus: answer === null ? null : async () => answer,
    isDisabled: false,
    hasSchema: false,
    flawsOf: () => [],
    close: async () => {},
  };
  const attempt = { order, destination, clock: systemClock, isProbe: false };
  return ((await checkResend(attempt, new Set())) ?? assert.fail('it cannot be sent')).settlement;
}

test('before an order in doubt that is too large dies, its destination is asked for its status', async () => {
  assert.ok(sent.end === 'sent');
  assert.equal((await check(tooLarge(true), { known: 'done', outcome: sent })).to, 'sent');
  for (const answer of [{ known: 'silent', detail: 'HTTP 500' } as const, null]) {
    const unknown = await check(tooLarge(true), answer);
    assert.ok(unknown.to === 'dead' && unknown.inDoubt);
    assert.match(unknown.error, /^UNKNOWN: an earlier attempt may have had its effect/);
  }
  const absent = await check(tooLarge(true), { known: 'absent' });
  assert.ok(absent.to === 'dead');
  assert.match(absent.error, /^BAD_REQUEST: request takes more than/);
});

test('an order that is too large and not in doubt dies without a status question', async () => {
  assert.ok(sent.end === 'sent');
  const dead = await check(tooLarge(false), { known: 'done', outcome: sent });
  assert.ok(dead.to === 'dead' && !dead.inDoubt);
  assert.match(dead.error, /^BAD_REQUEST/);
});
