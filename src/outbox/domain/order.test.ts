import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  decideProbe,
  decideSettlement,
  isSafeToResend,
  type ErrorCode,
  type OrderState,
  type SendOutcome,
  type SendPolicy,
} from './order.ts';

const policy: SendPolicy = {
  idempotency: 'enforced',
  dedupWindowMs: 86_400_000,
  retryMax: 8,
  backoff: { initialMs: 2000, maxMs: 256_000, jitter: 0.1 },
  maxAgeMs: 86_400_000,
};
const fresh: OrderState = { retryCount: 0, ageMs: 0, inDoubt: false };
const failure: SendOutcome = { end: 'failed', code: 'BROKER_5XX', detail: 'HTTP 503' };
const unknown: SendOutcome = { end: 'unknown', code: 'NETWORK_TIMEOUT', detail: 'no answer' };

const codes = fc.constantFrom<ErrorCode>('NETWORK_TIMEOUT', 'BROKER_5XX', 'CONFLICT_RUNNING', 'UNKNOWN');
const states: fc.Arbitrary<OrderState> = fc.record({
  retryCount: fc.nat(12),
  ageMs: fc.option(fc.nat(200_000_000)),
  inDoubt: fc.boolean(),
});
const policies: fc.Arbitrary<SendPolicy> = fc.record({
  idempotency: fc.constantFrom('none', 'enforced', 'consumer'),
  dedupWindowMs: fc.nat(100_000_000),
  retryMax: fc.nat(10),
  backoff: fc.record({
    initialMs: fc.integer({ min: 1, max: 5000 }),
    maxMs: fc.integer({ min: 5000, max: 500_000 }),
    jitter: fc.double({ min: 0, max: 0.5, noNaN: true }),
  }),
  maxAgeMs: fc.nat(100_000_000),
});
const retryAfter = fc.option(fc.nat(3_600_000), { nil: undefined });
const outcomes: fc.Arbitrary<SendOutcome> = fc.oneof(
  fc.constant<SendOutcome>({
    end: 'sent',
    answer: { status: 200, digest: 'sha256:1', outsideId: null },
    isConflict: false,
  }),
  fc.record({
    end: fc.constant('failed' as const),
    code: codes,
    detail: fc.string(),
    retryAfterMs: retryAfter,
  }),
  fc.record({
    end: fc.constant('unknown' as const),
    code: codes,
    detail: fc.string(),
    retryAfterMs: retryAfter,
  }),
  fc.record({ end: fc.constant('limited' as const), detail: fc.string(), retryAfterMs: retryAfter }),
  fc.record({
    end: fc.constant('refused' as const),
    code: fc.constantFrom('BAD_REQUEST' as const, 'UNAUTHORIZED' as const),
    detail: fc.string(),
  }),
  fc.record({ end: fc.constant('released' as const), reason: fc.string(), retryAfterMs: retryAfter }),
);
const randoms = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });

test('the delays are 2, 4, … 256 seconds with a tenth of jitter, and the ninth failure is the last', () => {
  const delays = Array.from({ length: 8 }, (_, retryCount) => {
    const settlement = decideSettlement({ ...fresh, retryCount }, failure, policy, () => 0.5);
    assert.ok(settlement.to === 'failed' && settlement.costsRetry);
    return settlement.delayMs / 1000;
  });
  assert.deepEqual(delays, [2, 4, 8, 16, 32, 64, 128, 256]);
  const last = decideSettlement({ ...fresh, retryCount: 8 }, failure, policy);
  assert.deepEqual(last, { to: 'dead', error: 'BROKER_5XX: HTTP 503', inDoubt: false });
});

test('a Retry-After of zero does not shorten the backoff', () => {
  const settlement = decideSettlement(fresh, { ...failure, retryAfterMs: 0 }, policy, () => 0.5);
  assert.ok(settlement.to === 'failed' && settlement.delayMs === 2000);
});

test('an order whose last answer is CONFLICT_RUNNING dies UNKNOWN', () => {
  const running: SendOutcome = { end: 'failed', code: 'CONFLICT_RUNNING', detail: 'HTTP 409' };
  const last = decideSettlement({ ...fresh, retryCount: 8 }, running, policy);
  assert.deepEqual(last, { to: 'dead', error: 'UNKNOWN: CONFLICT_RUNNING: HTTP 409', inDoubt: true });
});

test('a delay is never shorter than Retry-After, and jitter only lengthens it', () => {
  fc.assert(
    fc.property(states, policies, randoms, fc.nat(3_600_000), (state, any, random, retryAfterMs) => {
      const outcome: SendOutcome = { ...failure, retryAfterMs };
      const settlement = decideSettlement(state, outcome, any, () => random);
      if (settlement.to !== 'failed') return;
      assert.ok(settlement.delayMs >= retryAfterMs);
      const longest = any.backoff.maxMs * (1 + any.backoff.jitter);
      assert.ok(settlement.delayMs <= Math.max(longest, retryAfterMs * (1 + any.backoff.jitter)));
    }),
  );
});

test('an order in doubt is sent again only if that is safe', () => {
  fc.assert(
    fc.property(states, policies, (state, any) => {
      const settlement = decideSettlement(state, unknown, any);
      if (settlement.to === 'failed') assert.ok(isSafeToResend(state, any));
      else assert.ok(settlement.to === 'dead' && settlement.error.startsWith('UNKNOWN: '));
    }),
  );
});

test('doubt is never cleared, and an order that dies in doubt dies UNKNOWN', () => {
  fc.assert(
    fc.property(states, outcomes, policies, randoms, (state, outcome, any, random) => {
      for (const settlement of [
        decideSettlement(state, outcome, any, () => random),
        decideProbe(state, outcome, any),
      ]) {
        if (settlement.to !== 'failed' && settlement.to !== 'dead') continue;
        assert.equal(
          settlement.inDoubt,
          state.inDoubt || outcome.end === 'unknown' || isWorkedOn(settlement, outcome),
        );
        if (settlement.to === 'dead')
          assert.equal(settlement.error.startsWith('UNKNOWN: '), isUnknown(settlement, outcome));
      }
    }),
  );
});

function isWorkedOn({ to }: Readonly<{ to: string }>, outcome: SendOutcome): boolean {
  return to === 'dead' && outcome.end === 'failed' && outcome.code === 'CONFLICT_RUNNING';
}

function isUnknown({ inDoubt }: Readonly<{ inDoubt: boolean }>, outcome: SendOutcome): boolean {
  return inDoubt || ('code' in outcome && outcome.code === 'UNKNOWN');
}

test('an order is sent at most once more than it has retries', () => {
  fc.assert(
    fc.property(policies, fc.array(outcomes, { minLength: 40, maxLength: 40 }), (any, ends) => {
      let retryCount = 0;
      let sends = 0;
      for (const outcome of ends) {
        if (outcome.end === 'released' || outcome.end === 'limited') continue;
        sends += 1;
        const settlement = decideSettlement({ retryCount, ageMs: 0, inDoubt: false }, outcome, any);
        if (settlement.to !== 'failed') break;
        retryCount += 1;
      }
      assert.ok(sends <= any.retryMax + 1);
    }),
  );
});

test('rate limits cost no retry, but end at max_age', () => {
  const limited: SendOutcome = { end: 'limited', detail: 'HTTP 429' };
  const young = decideSettlement({ ...fresh, retryCount: 8 }, limited, policy);
  assert.ok(young.to === 'failed' && !young.costsRetry);
  const old = decideSettlement({ ...fresh, ageMs: policy.maxAgeMs }, limited, policy);
  assert.deepEqual(old, { to: 'dead', error: 'RATE_LIMITED: HTTP 429', inDoubt: false });
});

test('a failed probe costs no retry, whatever was tried before', () => {
  const settlement = decideProbe({ ...fresh, retryCount: 8 }, failure, policy);
  assert.ok(settlement.to === 'failed' && !settlement.costsRetry && settlement.delayMs === 0);
  const unsafe = decideProbe(fresh, unknown, { ...policy, idempotency: 'none' });
  assert.equal(unsafe.to, 'dead');
});

test('a released order is settled as before its claim', () => {
  const settlement = decideSettlement(fresh, { end: 'released', reason: 'stopping' }, policy);
  assert.deepEqual(settlement, { to: 'released', reason: 'stopping', delayMs: 0 });
});
