import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { planArrivals, type KnownRow } from './arrivals.ts';
import type { DeadLetter } from './dead-letter.ts';
import { recordSha256 } from './record-sha256.ts';

const value = Buffer.from('{"order":1}');
const key = Buffer.from('c-1');

function letter(offset: bigint, lineage: DeadLetter['lineage'] = null, bytes = value): DeadLetter {
  return {
    record: { offset, timestamp: 0n, key, value: bytes, headers: [], compression: 'none' },
    isJson: true,
    originalTopic: 'orders.v1',
    unroutable: false,
    dialect: 'plain',
    errorMessage: `error at ${offset}`,
    errorClass: null,
    errorStack: null,
    consumerGroup: null,
    originalPartition: null,
    originalOffset: null,
    originalTimestampMs: null,
    fingerprint: null,
    fingerprintBasis: null,
    lineage,
    removed: null,
  };
}

function row(id: string, state: Partial<KnownRow['state']> = {}): KnownRow {
  return {
    id,
    epoch: 5n,
    isArchived: false,
    isSealed: false,
    originalTopic: 'orders.v1',
    attempts: new Map(),
    publishedSha256: recordSha256(key, value),
    state: { status: 'RESOLVED', retryCount: 1, maxRetries: 3, attemptNo: 1, leaseIsLive: false, ...state },
  };
}

const back = (messageId: string, attempt: number | null = 1): DeadLetter['lineage'] => {
  return { messageId, attempt, version: null, headerTopic: 'orders.v1' };
};
const known = (...rows: KnownRow[]): ReadonlyMap<string, KnownRow> =>
  new Map(rows.map((one) => [one.id, one]));

test('records without our headers, and those that name an unknown message, are new', () => {
  const plan = planArrivals([letter(0n), letter(1n, back('forged'))], known(), new Set(), { maxRetries: 3 });
  assert.equal(plan.inserts.length, 2);
  assert.ok(plan.inserts.every(({ parentId, status }) => parentId === null && status === 'PENDING'));
});

test('several records of one message are applied in order, and the last error stays', () => {
  const plan = planArrivals([letter(0n, back('a')), letter(1n, back('a'))], known(row('a')), new Set(), {
    maxRetries: 3,
  });
  assert.deepEqual(
    plan.arrivals.map(({ kind, from, to }) => [kind, from.status, to.status]),
    [
      ['reopened', 'RESOLVED', 'PENDING'],
      ['repeated', 'PENDING', 'PENDING'],
    ],
  );
  assert.equal(plan.changes.length, 1);
  assert.equal(plan.changes[0]?.letter.errorMessage, 'error at 1');
  assert.deepEqual([plan.reopened, plan.folded], [1, 1]);
});

test('a failure of an earlier attempt changes only the history', () => {
  const plan = planArrivals([letter(0n, back('a', 1))], known(row('a', { attemptNo: 2 })), new Set(), {
    maxRetries: 3,
  });
  assert.deepEqual([plan.changes.length, plan.arrivals[0]?.kind, plan.folded], [0, 'late_failure', 1]);
});

test('a child that inherits no attempts is DEAD on arrival', () => {
  const other = Buffer.from('another message');
  const spent = known(row('a', { retryCount: 3 }));
  const plan = planArrivals([letter(0n, back('a'), other)], spent, new Set(), { maxRetries: 3 });
  assert.deepEqual(
    plan.inserts.map(({ status, retryCount, parentId }) => [status, retryCount, parentId]),
    [['DEAD', 3, 'a']],
  );
});

test('every record is counted exactly once', () => {
  const arrival = fc.record({
    about: fc.constantFrom('a', 'b', 'unknown', null),
    attempt: fc.option(fc.integer({ min: 1, max: 4 })),
    isOther: fc.boolean(),
    isTaken: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 30 }), (arrivals) => {
      const letters = arrivals.map(({ about, attempt, isOther }, i) =>
        letter(BigInt(i), about === null ? null : back(about, attempt), isOther ? Buffer.from('x') : value),
      );
      const taken = new Set(arrivals.flatMap(({ isTaken }, i) => (isTaken ? [BigInt(i)] : [])));
      const rows = known(row('a'), row('b', { status: 'DEAD', retryCount: 3, attemptNo: 3 }));
      const plan = planArrivals(letters, rows, taken, { maxRetries: 3 });
      assert.equal(plan.inserts.length + plan.reopened + plan.folded + plan.reread, letters.length);
      assert.equal(plan.reread, taken.size);
      assert.ok(plan.changes.every(({ row: changed }) => rows.has(changed.id)));
    }),
  );
});
