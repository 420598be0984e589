import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MessageState } from './message.ts';
import { traceLineage, type Arrival, type KnownMessage } from './lineage.ts';

const sha256 = Buffer.alloc(32, 1);
const state: MessageState = {
  status: 'RESOLVED',
  retryCount: 1,
  maxRetries: 3,
  attemptNo: 4,
  leaseIsLive: false,
};
const known: KnownMessage = { state, publishedSha256: sha256, originalTopic: 'orders.v1' };
const arrival: Arrival = { attempt: 4, sha256, toldTopic: 'orders.v1', originalTopic: 'orders.v1' };

test('what we published and comes back from the same topic is the same message failing again', () => {
  const lineage = traceLineage(known, arrival);
  assert.ok(lineage.kind === 'reopened');
  assert.deepEqual(lineage.next, { ...state, status: 'PENDING' });
});

test('it needs no told topic and no attempt number to be recognised', () => {
  assert.equal(traceLineage(known, { ...arrival, toldTopic: null }).kind, 'reopened');
  assert.equal(traceLineage(known, { ...arrival, attempt: null }).kind, 'reopened');
  assert.equal(traceLineage(known, { ...arrival, attempt: 9 }).kind, 'reopened');
});

test('the last allowed attempt that comes back is DEAD', () => {
  const lineage = traceLineage({ ...known, state: { ...state, retryCount: 3 } }, arrival);
  assert.ok(lineage.kind === 'reopened' && lineage.next.status === 'DEAD');
});

test('a failure of an earlier attempt changes nothing', () => {
  assert.equal(traceLineage(known, { ...arrival, attempt: 3 }).kind, 'late_failure');
});

test('PENDING and DEAD keep their status when the failure arrives once more', () => {
  for (const status of ['PENDING', 'DEAD'] as const)
    assert.equal(traceLineage({ ...known, state: { ...state, status } }, arrival).kind, 'repeated');
});

test('headers copied to another message make a child, which shares the budget only on the same topic', () => {
  const other = { ...arrival, sha256: Buffer.alloc(32, 2) };
  assert.deepEqual(traceLineage(known, other), { kind: 'child', retryCount: 1 });
  assert.deepEqual(traceLineage(known, { ...other, toldTopic: 'bills.v1', originalTopic: 'bills.v1' }), {
    kind: 'child',
    retryCount: 0,
  });
  assert.deepEqual(traceLineage(known, { ...arrival, toldTopic: 'bills.v1', originalTopic: 'bills.v1' }), {
    kind: 'child',
    retryCount: 0,
  });
});

test('a child shares the budget also where only the name of its dead-letter topic tells where it belongs', () => {
  const other = { ...arrival, sha256: Buffer.alloc(32, 2), toldTopic: null };
  assert.deepEqual(traceLineage(known, other), { kind: 'child', retryCount: 1 });
});

test('a message that was never published cannot come back', () => {
  assert.equal(traceLineage({ ...known, publishedSha256: null }, arrival).kind, 'child');
});
