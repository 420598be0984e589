import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { ClaimedMessage, MessageBody, PublishResult } from './ports.ts';
import { publishClaimed, type PublishDeps } from './publish-claimed.ts';

const body: MessageBody = { key: null, value: null, headers: [] };

function claimed(id: string, bytes: number): ClaimedMessage {
  return {
    id,
    targetTopic: 'orders.v1',
    hasValue: true,
    bytes,
    body: bytes <= 16_384 ? body : null,
    dialect: null,
    attemptNo: 1,
    originalTimestampMs: null,
    retryCount: 1,
    maxRetries: 3,
  };
}

/** Publishes into a list, and answers as told for each record. */
function createDeps(answer: (index: number) => PublishResult): PublishDeps & { calls: string[][] } {
  const calls: string[][] = [];
  let index = 0;
  const loadBodies = async (_lease: unknown, ids: readonly string[]) =>
    new Map(ids.map((id) => [id, body] as const));
  return {
    calls,
    store: { loadBodies } as unknown as PublishDeps['store'],
    publish: async (records) => {
      calls.push(records.map(({ headers }) => headers[0]?.value?.toString() ?? ''));
      return records.map(() => answer(index++));
    },
    clock: { now: () => new Date(), monotonicMs: () => 0 },
    publishTimeoutMs: 1000,
    republishKey: 'original',
    stripFailureHeaders: (headers) => headers,
    isDeadLetterTopic: () => false,
  };
}

const lease = { owner: 'me', epoch: 1n, endsAtMs: 60_000 };
const acked: PublishResult = { result: 'acked', partition: 0, offset: 0n };

test('every claimed message has an outcome, in order and in parts that fit into memory', async () => {
  const sizes = fc.array(
    fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 20_000 }), fc.constant(900_000)),
    {
      maxLength: 60,
    },
  );
  await fc.assert(
    fc.asyncProperty(sizes, async (bytes) => {
      const messages = bytes.map((size, i) => claimed(`m-${i}`, size));
      const deps = createDeps(() => acked);
      const published = await publishClaimed(deps, { lease, messages });
      assert.deepEqual(
        [...published].map(([id, { outcome }]) => [id, outcome.end]),
        messages.map(({ id }) => [id, 'published']),
      );
      assert.deepEqual(
        deps.calls.flat(),
        messages.map(({ id }) => id),
      );
      for (const part of deps.calls) {
        const size = part.reduce((sum, id) => sum + (bytes[Number(id.slice(2))] ?? 0), 0);
        assert.ok(part.length === 1 || size <= 8 << 20);
      }
    }),
  );
});

test('what lies behind a part that the broker did not take is given back unsent', async () => {
  const messages = Array.from({ length: 30 }, (_, i) => claimed(`m-${i}`, 900_000));
  const down: PublishResult = { result: 'unknown', code: 'TIMEOUT', message: 'no answer' };
  const deps = createDeps((index) => (index === 0 ? down : acked));
  const published = await publishClaimed(deps, { lease, messages });
  assert.equal(deps.calls.length, 1);
  assert.equal(published.get('m-0')?.outcome.end, 'unknown');
  assert.equal(published.get('m-29')?.outcome.end, 'released');
});

test('nothing is sent when too little of the lease is left', async () => {
  const deps = createDeps(() => acked);
  const published = await publishClaimed(deps, {
    lease: { ...lease, endsAtMs: 999 },
    messages: [claimed('a', 1)],
  });
  assert.deepEqual(deps.calls, []);
  assert.equal(published.get('a')?.outcome.end, 'released');
});

test('what was acknowledged keeps its outcome when the bytes of the rest cannot be loaded', async () => {
  const messages = Array.from({ length: 30 }, (_, i) => claimed(`m-${i}`, 900_000));
  const deps = createDeps(() => acked);
  let loads = 0;
  const loadBodies: PublishDeps['store']['loadBodies'] = async (lease, ids) => {
    loads += 1;
    if (loads === 2) throw new Error('Connection terminated');
    return deps.store.loadBodies(lease, ids);
  };
  const store = { loadBodies } as unknown as PublishDeps['store'];
  const published = await publishClaimed({ ...deps, store }, { lease, messages });
  assert.equal(published.size, 30);
  assert.equal(published.get('m-0')?.outcome.end, 'published');
  assert.equal(published.get('m-29')?.outcome.end, 'released');
  assert.equal(deps.calls.length, 1);
});
