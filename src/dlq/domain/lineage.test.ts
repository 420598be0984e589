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
const known: KnownMessage = {
  state,
  attempts: new Map(),
  publishedSha256: sha256,
  originalTopic: 'orders.v1',
};
const arrival: Arrival = {
  attempt: 4,
  version: null,
  sha256,
  protectedSha256: null,
  headerTopic: 'orders.v1',
  namesPlace: false,
  originalTopic: 'orders.v1',
};

test('a published record that comes back from the same topic is the same message', () => {
  const lineage = traceLineage(known, arrival);
  assert.ok(lineage.kind === 'reopened');
  assert.deepEqual(lineage.next, { ...state, status: 'PENDING' });
});

test('a record is recognised without a topic or attempt number in its headers', () => {
  assert.equal(traceLineage(known, { ...arrival, headerTopic: null }).kind, 'reopened');
  assert.equal(traceLineage(known, { ...arrival, attempt: null }).kind, 'reopened');
  assert.equal(traceLineage(known, { ...arrival, attempt: 9 }).kind, 'reopened');
});

test('a record that names the place of the published one is the same message, even if its bytes changed', () => {
  const changed = { ...arrival, sha256: Buffer.alloc(32, 2), headerTopic: null };
  assert.equal(traceLineage(known, changed).kind, 'child');
  assert.equal(traceLineage(known, { ...changed, namesPlace: true }).kind, 'reopened');
});

test('a message whose last attempt comes back is DEAD', () => {
  const lineage = traceLineage({ ...known, state: { ...state, retryCount: 3 } }, arrival);
  assert.ok(lineage.kind === 'reopened' && lineage.next.status === 'DEAD');
});

test('a failure of an earlier attempt changes nothing', () => {
  assert.equal(traceLineage(known, { ...arrival, attempt: 3 }).kind, 'late_failure');
});

test('PENDING and DEAD messages keep their status when the failure arrives again', () => {
  for (const status of ['PENDING', 'DEAD'] as const)
    assert.equal(traceLineage({ ...known, state: { ...state, status } }, arrival).kind, 'repeated');
});

test('headers copied to another message make a child, which inherits the budget only on the same topic', () => {
  const other = { ...arrival, sha256: Buffer.alloc(32, 2) };
  assert.deepEqual(traceLineage(known, other), { kind: 'child', retryCount: 1 });
  assert.deepEqual(traceLineage(known, { ...other, headerTopic: 'bills.v1', originalTopic: 'bills.v1' }), {
    kind: 'child',
    retryCount: 0,
  });
  assert.deepEqual(traceLineage(known, { ...arrival, headerTopic: 'bills.v1', originalTopic: 'bills.v1' }), {
    kind: 'child',
    retryCount: 0,
  });
});

test('a child inherits the budget also if only the name of its dead-letter topic gives its topic', () => {
  const other = { ...arrival, sha256: Buffer.alloc(32, 2), headerTopic: null };
  assert.deepEqual(traceLineage(known, other), { kind: 'child', retryCount: 1 });
});

test('a message that was never published cannot come back', () => {
  assert.equal(traceLineage({ ...known, publishedSha256: null }, arrival).kind, 'child');
});

test('a record is compared with the attempt that it names, or the newest if it names none', () => {
  const first = { sha256: Buffer.alloc(32, 7), topic: 'orders.v0', version: 0 };
  const newest = { sha256, topic: 'orders.v1', version: 0 };
  const routed = {
    ...known,
    originalTopic: 'orders.v2',
    attempts: new Map([
      [1, first],
      [4, newest],
    ]),
  };
  const late = { ...arrival, attempt: 1, sha256: first.sha256, headerTopic: 'orders.v0' };
  assert.equal(traceLineage(routed, late).kind, 'late_failure');
  assert.equal(traceLineage(routed, { ...late, headerTopic: 'orders.v1' }).kind, 'child');
  assert.equal(traceLineage(routed, { ...late, sha256 }).kind, 'child');
  for (const attempt of [4, 9, null])
    assert.equal(traceLineage(routed, { ...arrival, attempt }).kind, 'reopened', String(attempt));
});

test('an edited record is compared with the version that its attempt published', () => {
  const sent = { sha256, topic: 'orders.v1', version: 2 };
  const edited = { ...known, attempts: new Map([[4, sent]]) };
  assert.equal(traceLineage(edited, { ...arrival, version: 2 }).kind, 'reopened');
  assert.equal(traceLineage(edited, { ...arrival, version: 1 }).kind, 'child');
  // The original has no such header, and a consumer may drop it.
  assert.equal(traceLineage(edited, arrival).kind, 'reopened');
});
