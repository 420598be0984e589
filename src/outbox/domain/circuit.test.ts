import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  extendStreak,
  isProbeDue,
  noStreak,
  openCircuit,
  outageOf,
  settleProbe,
  takeProbe,
  type Circuit,
  type Streak,
} from './circuit.ts';
import type { SendOutcome } from './order.ts';

const answer = { status: 200, digest: 'sha256:00', outsideId: null };
const sent: SendOutcome = { end: 'sent', answer, isConflict: false };
const conflict: SendOutcome = { end: 'sent', answer, isConflict: true };
const refused: SendOutcome = { end: 'refused', code: 'BAD_REQUEST', detail: '400' };
const running: SendOutcome = { end: 'failed', code: 'CONFLICT_RUNNING', detail: '409' };
const limited: SendOutcome = { end: 'limited', detail: '429' };
const timeout: SendOutcome = { end: 'unknown', code: 'NETWORK_TIMEOUT', detail: 'no answer' };
const away: SendOutcome = { end: 'failed', code: 'NETWORK_TIMEOUT', detail: 'connection refused' };
const broken: SendOutcome = { end: 'failed', code: 'BROKER_5XX', detail: '503' };
const garbage: SendOutcome = { end: 'unknown', code: 'UNKNOWN', detail: 'no JSON' };
const unauthorized: SendOutcome = { end: 'refused', code: 'UNAUTHORIZED', detail: '401' };
const released: SendOutcome = { end: 'released', reason: 'stopping' };

const contacts = [sent, conflict, refused, running, limited];
const failures = [timeout, away, broken, garbage];
const timing = { initialMs: 5000, maxMs: 60_000, leaseMs: 8000 };
const startMs = 1_800_000_000_000;

type Ended = readonly [orderId: bigint, outcome: SendOutcome];

const streakOf = (ends: readonly Ended[], from: Streak = noStreak): Streak =>
  ends.reduce((streak, [id, outcome]) => extendStreak(streak, id, outcome), from);

test('five failures in a row of three orders are an outage, four or those of two orders are not', () => {
  const four: Ended[] = [
    [1n, timeout],
    [2n, away],
    [3n, broken],
    [3n, garbage],
  ];
  assert.equal(outageOf(streakOf(four)), null);
  assert.equal(outageOf(streakOf([...four, [1n, broken]])), 'BROKER_5XX: 503');
  const ofTwo: Ended[] = Array.from({ length: 20 }, (_, i) => [BigInt(i % 2), timeout]);
  assert.equal(outageOf(streakOf(ofTwo)), null);
  assert.equal(outageOf(streakOf([...ofTwo, [7n, timeout]])), 'NETWORK_TIMEOUT: no answer');
});

test('three orders in a row that are not authorised are an outage', () => {
  const two: Ended[] = [
    [1n, unauthorized],
    [2n, unauthorized],
  ];
  assert.equal(outageOf(streakOf(two)), null);
  assert.equal(outageOf(streakOf([...two, [3n, released], [4n, unauthorized]])), 'UNAUTHORIZED: 401');
  assert.equal(outageOf(streakOf([...two, [3n, timeout], [4n, unauthorized]])), null);
});

test('every answer about the order itself ends the streak, and an unsent order changes nothing', () => {
  const four: Ended[] = [1n, 2n, 3n, 4n].map((id) => [id, timeout]);
  for (const contact of contacts) assert.equal(streakOf([...four, [5n, contact]]), noStreak);
  assert.deepEqual(streakOf([...four, [5n, released]]), streakOf(four));
});

test('the reason can be stored whatever the destination said', () => {
  const hostile: SendOutcome = { end: 'failed', code: 'BROKER_5XX', detail: `a\0b\ud800${'x'.repeat(9999)}` };
  const reason = outageOf(streakOf([1n, 2n, 3n, 4n, 5n].map((id) => [id, hostile]))) ?? '';
  assert.ok(reason.isWellFormed() && !reason.includes('\0') && Buffer.byteLength(reason) <= 500);
});

const anyOutcome = fc.constantFrom(...contacts, ...failures, unauthorized, released);
const anyEnd = fc.tuple(fc.bigInt(1n, 6n), anyOutcome);

test('one failing order never opens the circuit, however it fails and whatever succeeds in between', () => {
  const poison = fc.constantFrom(...failures, unauthorized, released);
  const end = fc.oneof(
    { weight: 9, arbitrary: fc.tuple(fc.constant(1n), poison) },
    { weight: 1, arbitrary: fc.tuple(fc.bigInt(2n, 9n), fc.constantFrom(...contacts)) },
  );
  fc.assert(
    fc.property(fc.array(end, { maxLength: 100 }), (ends) => {
      let streak = noStreak;
      for (const [id, outcome] of ends) {
        streak = extendStreak(streak, id, outcome);
        assert.equal(outageOf(streak), null);
      }
    }),
  );
});

test('an outage always opens the circuit, whatever was before it', () => {
  const failing = fc.tuple(fc.bigInt(1n, 6n), fc.constantFrom(...failures, unauthorized, released));
  fc.assert(
    fc.property(fc.array(anyEnd), fc.array(failing, { minLength: 8, maxLength: 40 }), (history, outage) => {
      const real = outage.filter(([, { end }]) => end !== 'released');
      fc.pre(real.length >= 5 && new Set(real.map(([id]) => id)).size >= 3);
      assert.notEqual(outageOf(streakOf(outage, streakOf(history))), null);
    }),
  );
});

test('the streak remembers no more than it needs', () => {
  const streak = streakOf(Array.from({ length: 500 }, (_, i) => [BigInt(i), unauthorized]));
  assert.deepEqual([streak.all.itemIds.length, streak.unauthorized.itemIds.length], [3, 3]);
});

test('the first probe is due after five seconds, and failed ones double the interval up to a minute', () => {
  let circuit: Circuit | null = openCircuit(null, 'away', startMs, timing);
  assert.ok(!isProbeDue(circuit, startMs + 4999) && isProbeDue(circuit, startMs + 5000));
  const intervals = [1, 2, 3, 4, 5, 6].map(() => {
    circuit = settleProbe(circuit as Circuit, { orderId: 1n, outcome: timeout }, startMs, timing);
    return (circuit?.nextProbeAtMs ?? 0) - startMs;
  });
  assert.deepEqual(intervals, [10_000, 20_000, 40_000, 60_000, 60_000, 60_000]);
});

test('an open circuit keeps its start and its reason when it is opened again', () => {
  const circuit = openCircuit(null, 'away', startMs, timing);
  assert.equal(openCircuit(circuit, 'still away', startMs + 9000, timing), circuit);
  assert.equal(isProbeDue(null, startMs), false);
});

test('a taken probe blocks other probes while it can still be in flight', () => {
  const circuit = openCircuit(null, 'away', startMs, timing);
  const taken = takeProbe(circuit, startMs + 5000, timing);
  assert.ok(!isProbeDue(taken, startMs + 12_999) && isProbeDue(taken, startMs + 13_000));
  const slow = takeProbe({ ...circuit, intervalMs: 40_000 }, startMs, timing);
  assert.equal(slow.nextProbeAtMs, startMs + 40_000);
});

test('any contact closes the circuit, a failure and an order that was not sent do not', () => {
  const circuit = openCircuit(null, 'away', startMs, timing);
  for (const outcome of contacts)
    assert.equal(settleProbe(circuit, { orderId: 1n, outcome }, startMs, timing), null);
  for (const outcome of [...failures, unauthorized]) {
    const next = settleProbe(circuit, { orderId: 9n, outcome }, startMs, timing);
    assert.deepEqual([next?.lastProbeId, next?.intervalMs], [9n, 10_000]);
  }
  const untaken = settleProbe(
    { ...circuit, lastProbeId: 8n },
    { orderId: null, outcome: null },
    startMs,
    timing,
  );
  assert.deepEqual([untaken?.lastProbeId, untaken?.nextProbeAtMs], [8n, startMs + 5000]);
  for (const outcome of [released, null]) {
    const next = settleProbe(circuit, { orderId: 9n, outcome }, startMs, timing);
    assert.deepEqual([next?.lastProbeId, next?.intervalMs, next?.nextProbeAtMs], [9n, 5000, startMs + 5000]);
  }
});
