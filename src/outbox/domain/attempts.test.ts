import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { attemptsOf, type AttemptOutcome, type AuditEntry } from './attempts.ts';

type Row = Partial<AuditEntry> & Pick<AuditEntry, 'statusFrom' | 'statusTo'>;

const minute = (n: number): Date => new Date(Date.UTC(2026, 1, 20, 10, n));

/** Rows in the order in which they were written, a minute apart. */
function auditOf(rows: readonly Row[]): readonly AuditEntry[] {
  return rows.map((row, i) => ({
    id: BigInt(i + 1),
    retryCount: 0,
    lastError: null,
    at: minute(i),
    actor: 'worker-1',
    reason: null,
    traceId: null,
    brokerOrderId: null,
    leaseEpoch: null,
    ...row,
  }));
}

const accepted: Row = { statusFrom: null, statusTo: 'queued' };
const again: Row = { statusFrom: 'failed', statusTo: 'queued' };
const claimed = (leaseEpoch: bigint): Row => ({ statusFrom: 'queued', statusTo: 'sending', leaseEpoch });
const reaped: Row = {
  statusFrom: 'sending',
  statusTo: 'failed',
  lastError: 'UNKNOWN: lease expired',
  actor: 'reaper',
  reason: 'lease expired',
  leaseEpoch: 99n,
};

const storyOf = (rows: readonly Row[]) =>
  attemptsOf(auditOf(rows)).map(({ no, outcome, error, outsideId }) => [no, outcome, error, outsideId]);

test('an order without a claim has no attempts', () => {
  assert.deepEqual(attemptsOf([]), []);
  assert.deepEqual(attemptsOf(auditOf([accepted])), []);
});

test('each claim starts an attempt, and the next row from sending ends it', () => {
  const audit = auditOf([
    accepted,
    claimed(1n),
    { statusFrom: 'sending', statusTo: 'failed', lastError: 'BROKER_5XX: 503', leaseEpoch: 1n },
    again,
    claimed(2n),
    { statusFrom: 'sending', statusTo: 'sent', brokerOrderId: 'brk-1', leaseEpoch: 2n },
  ]);
  assert.deepEqual(attemptsOf(audit), [
    {
      no: 1,
      startedAt: minute(1),
      endedAt: minute(2),
      outcome: 'failed',
      error: 'BROKER_5XX: 503',
      outsideId: null,
      leaseEpoch: 1n,
    },
    {
      no: 2,
      startedAt: minute(4),
      endedAt: minute(5),
      outcome: 'sent',
      error: null,
      outsideId: 'brk-1',
      leaseEpoch: 2n,
    },
  ]);
});

test('an attempt without an end is running', () => {
  const [attempt] = attemptsOf(auditOf([accepted, claimed(1n)]));
  assert.equal(attempt?.outcome, 'running');
  assert.equal(attempt.endedAt, null);
});

test('a released attempt shows the reason, whatever its previous status', () => {
  const reason = 'shutting down';
  assert.deepEqual(storyOf([accepted, claimed(1n), { statusFrom: 'sending', statusTo: 'queued', reason }]), [
    [1, 'released', reason, null],
  ]);
  assert.deepEqual(storyOf([again, claimed(1n), { statusFrom: 'sending', statusTo: 'failed', reason }]), [
    [1, 'released', reason, null],
  ]);
});

test('an expired lease differs from a failure, also without retries left', () => {
  const error = 'UNKNOWN: lease expired';
  assert.deepEqual(storyOf([claimed(1n), reaped]), [[1, 'lease_expired', error, null]]);
  assert.deepEqual(storyOf([claimed(1n), { ...reaped, statusTo: 'dead' }]), [
    [1, 'lease_expired', error, null],
  ]);
  const refused: Row = { statusFrom: 'sending', statusTo: 'dead', lastError: 'BAD_REQUEST: 400' };
  assert.deepEqual(storyOf([claimed(1n), refused]), [[1, 'dead', 'BAD_REQUEST: 400', null]]);
});

test('an attempt that found the effect in the ledger is already_sent', () => {
  const known: Row = { statusFrom: 'sending', statusTo: 'sent', reason: 'the ledger knows' };
  assert.deepEqual(storyOf([claimed(1n), reaped, again, claimed(2n), known]), [
    [1, 'lease_expired', 'UNKNOWN: lease expired', null],
    [2, 'already_sent', null, null],
  ]);
});

test('a late success belongs to its own attempt while the next one is running', () => {
  const late: Row = {
    statusFrom: 'sending',
    statusTo: 'sending',
    leaseEpoch: 1n,
    brokerOrderId: 'brk-1',
    reason: 'late success',
  };
  assert.deepEqual(storyOf([claimed(1n), reaped, again, claimed(2n), late]), [
    [1, 'late_success', null, 'brk-1'],
    [2, 'running', null, null],
  ]);
  const known: Row = { statusFrom: 'sending', statusTo: 'sent', reason: 'the ledger knows' };
  assert.deepEqual(storyOf([claimed(1n), reaped, again, claimed(2n), late, known]), [
    [1, 'late_success', null, 'brk-1'],
    [2, 'already_sent', null, null],
  ]);
});

test('a late success revives a dead order, with or without an outside id', () => {
  const late: Row = { statusFrom: 'dead', statusTo: 'sent', leaseEpoch: 1n };
  assert.deepEqual(storyOf([claimed(1n), { ...reaped, statusTo: 'dead' }, late]), [
    [1, 'late_success', null, null],
  ]);
});

test('a decision about a dead order is not an attempt', () => {
  const refused: Row = { statusFrom: 'sending', statusTo: 'dead', lastError: 'BAD_REQUEST: 400' };
  const skipped: Row = { statusFrom: 'dead', statusTo: 'dead', actor: 'ann', reason: 'skipped' };
  assert.deepEqual(storyOf([claimed(1n), refused, skipped]), [[1, 'dead', 'BAD_REQUEST: 400', null]]);
});

test('if the first audit rows are deleted, the rest is still shown', () => {
  const sent: Row = { statusFrom: 'sending', statusTo: 'sent', brokerOrderId: 'brk-1' };
  const late: Row = { statusFrom: 'sent', statusTo: 'sent', brokerOrderId: 'brk-2', leaseEpoch: 1n };
  assert.deepEqual(storyOf([sent, late]), [
    [1, 'sent', null, 'brk-1'],
    [2, 'late_success', null, 'brk-2'],
  ]);
  assert.equal(attemptsOf(auditOf([sent]))[0]?.startedAt, null);
});

test('an attempt without an end is unknown once the next one starts', () => {
  assert.deepEqual(storyOf([claimed(1n), claimed(2n)]), [
    [1, 'unknown', null, null],
    [2, 'running', null, null],
  ]);
});

const ends: Readonly<Partial<Record<AttemptOutcome, Row>>> = {
  failed: { statusFrom: 'sending', statusTo: 'failed', lastError: 'NETWORK_TIMEOUT: 5000 ms' },
  released: { statusFrom: 'sending', statusTo: 'failed', reason: 'the circuit is open' },
  lease_expired: reaped,
};

test('the attempts do not depend on earlier rows or on the order in which rows are read', () => {
  const outcome = fc.constantFrom(
    'failed',
    'released',
    'lease_expired',
  ) satisfies fc.Arbitrary<AttemptOutcome>;
  fc.assert(
    fc.property(fc.array(outcome), fc.infiniteStream(fc.nat()), (before, shuffle) => {
      const rows = before.flatMap((end, i) => [
        i === 0 ? accepted : again,
        claimed(BigInt(i)),
        ends[end] ?? again,
      ]);
      const last: readonly Row[] = [
        again,
        claimed(1000n),
        { statusFrom: 'sending', statusTo: 'sent', brokerOrderId: 'brk-1' },
      ];
      const shuffled = auditOf([...rows, ...last])
        .map((entry) => [shuffle.next().value, entry] as const)
        .toSorted(([a], [b]) => a - b)
        .map(([, entry]) => entry);
      assert.deepEqual(
        attemptsOf(shuffled).map(({ no, outcome }) => [no, outcome]),
        [...before, 'sent'].map((outcome, i) => [i + 1, outcome]),
      );
    }),
  );
});
