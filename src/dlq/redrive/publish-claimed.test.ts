import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { PublishResult } from '../../platform/broker/port.ts';
import type { Sql } from '../../platform/postgres/sql.ts';
import type { Worker } from '../../platform/work/work.ts';
import { clearPayloads } from '../domain/payloads.ts';
import type { ClaimedMessage, StoredBody } from './claim-messages.ts';
import { createKeyOrder } from './key-order.ts';
import { publishClaimed, type PublishDeps } from './publish-claimed.ts';

const parts: StoredBody['parts'] = { key: null, value: null, headers: null };

function claimed(id: string, bytes: number): ClaimedMessage {
  return {
    id,
    targetTopic: 'orders.v1',
    isRouted: false,
    hasValue: true,
    bytes,
    body: bytes <= 16_384 ? { id, isSealed: false, parts } : null,
    dialect: null,
    orderKey: null,
    place: { createdAt: '2026-01-02T03:04:05.000000Z', id },
    compression: null,
    claimedAtMs: 1_790_000_000_000n,
    attemptNo: 1,
    version: 0,
    originalTimestampMs: null,
  };
}

/** Has the body of every message; the only statement of a publish asks for bodies by id. */
function createWorker(onLoad: () => void = () => {}): Worker {
  const query = async (statement: Sql): Promise<readonly unknown[]> => {
    onLoad();
    const ids = statement.values.find((value) => Array.isArray(value)) as readonly string[];
    return ids.map((id) => ({ id, is_sealed: false, ...parts }));
  };
  return {
    db: { query: query as Worker['db']['query'] },
    clock: { now: () => new Date(), monotonicMs: () => 0 },
    owner: 'me',
    onStale: () => {},
  };
}

/** Records what is published, and returns a result for each record. */
function createDeps(resultOf: (index: number) => PublishResult): PublishDeps & { calls: string[][] } {
  const calls: string[][] = [];
  let index = 0;
  return {
    calls,
    worker: createWorker(),
    payloads: clearPayloads,
    publish: async (records) => {
      calls.push(records.map(({ headers }) => headers[0]?.value?.toString() ?? ''));
      return records.map(() => resultOf(index++));
    },
    publishTimeoutMs: 1000,
    republishKey: 'original',
    republishCompression: 'source',
    stripFailureHeaders: (headers) => headers,
    isDeadLetterTopic: () => false,
    isAllowedTarget: () => true,
  };
}

const lease = { owner: 'me', epoch: 1n, endsAtMs: 60_000 };
const acked: PublishResult = { result: 'acked', partition: 0, offset: 0n };

test('every claimed message has an outcome, in order and in slices that fit into memory', async () => {
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

test('messages after a slice that met an outage are released', async () => {
  const messages = Array.from({ length: 30 }, (_, i) => claimed(`m-${i}`, 900_000));
  const down: PublishResult = { result: 'unknown', code: 'TIMEOUT', message: 'no answer' };
  const deps = createDeps((index) => (index === 0 ? down : acked));
  const published = await publishClaimed(deps, { lease, messages });
  assert.equal(deps.calls.length, 1);
  assert.equal(published.get('m-0')?.outcome.end, 'unknown');
  assert.equal(published.get('m-29')?.outcome.end, 'released');
});

test('nothing is sent when too little time is left on the lease', async () => {
  const deps = createDeps(() => acked);
  const published = await publishClaimed(deps, {
    lease: { ...lease, endsAtMs: 999 },
    messages: [claimed('a', 1)],
  });
  assert.deepEqual(deps.calls, []);
  assert.equal(published.get('a')?.outcome.end, 'released');
});

test('acknowledged messages keep their outcome when the rest cannot be loaded', async () => {
  const messages = Array.from({ length: 30 }, (_, i) => claimed(`m-${i}`, 900_000));
  const deps = createDeps(() => acked);
  let loads = 0;
  const worker = createWorker(() => {
    loads += 1;
    if (loads === 2) throw new Error('Connection terminated');
  });
  const published = await publishClaimed({ ...deps, worker }, { lease, messages });
  assert.equal(published.size, 30);
  assert.equal(published.get('m-0')?.outcome.end, 'published');
  assert.equal(published.get('m-29')?.outcome.end, 'released');
  assert.equal(deps.calls.length, 1);
});

const keyed = (id: string, key: string, bytes = 1): ClaimedMessage => ({
  ...claimed(id, bytes),
  orderKey: Buffer.from(key),
});

const refused: PublishResult = {
  result: 'failed',
  fault: 'record',
  retriable: false,
  code: 'MESSAGE_TOO_LARGE',
  message: 'too large',
};

test('a refused message blocks its key, in later slices and in later batches too', async () => {
  const order = createKeyOrder();
  const deps = createDeps((index) => (index === 0 ? refused : acked));
  const large = 5 << 20;
  const first = [keyed('a1', 'a', large), keyed('a2', 'a', large), keyed('b1', 'b', large)];
  const published = await publishClaimed(deps, { lease, messages: first }, order);
  assert.deepEqual(
    [...published.values()].map(({ outcome, release }) => [outcome.end, release]),
    [
      ['failed', null],
      ['released', 'blocked'],
      ['published', null],
    ],
  );
  const next = await publishClaimed(deps, { lease, messages: [keyed('a3', 'a'), keyed('b2', 'b')] }, order);
  assert.deepEqual(
    [...next.values()].map(({ outcome }) => outcome.end),
    ['released', 'published'],
  );
});

test('a missing topic, a missing right and an outage release the attempt; a refusal and an unknown result count it', async () => {
  const failed = (fault: 'cluster' | 'topic' | 'record'): PublishResult => ({
    result: 'failed',
    fault,
    retriable: fault === 'cluster',
    code: 'CODE',
    message: 'why',
  });
  const ends: readonly (readonly [PublishResult, string, string | null])[] = [
    [failed('cluster'), 'released', 'cluster'],
    [failed('topic'), 'released', 'target'],
    [failed('record'), 'failed', null],
    [{ result: 'unknown', code: 'CODE', message: 'no answer' }, 'unknown', null],
    [{ result: 'skipped', behind: 0 }, 'released', 'blocked'],
  ];
  for (const [result, end, release] of ends) {
    const deps = createDeps(() => result);
    const one = (await publishClaimed(deps, { lease, messages: [claimed('m', 1)] })).get('m');
    assert.deepEqual([one?.outcome.end, one?.release], [end, release], result.result);
  }
});

test('a record has the timestamp of the database and the codec of its source batch', async () => {
  const codecs: unknown[] = [];
  const deps = createDeps(() => acked);
  const publish: PublishDeps['publish'] = async (records) => {
    codecs.push(...records.map(({ timestamp, compression }) => [timestamp, compression]));
    return records.map(() => acked);
  };
  const messages = [{ ...claimed('a', 1), compression: 'lz4' as const }, claimed('b', 1)];
  await publishClaimed({ ...deps, publish }, { lease, messages });
  await publishClaimed({ ...deps, publish, republishCompression: 'zstd' }, { lease, messages });
  assert.deepEqual(codecs, [
    [1_790_000_000_000n, 'lz4'],
    [1_790_000_000_000n, 'unknown'],
    [1_790_000_000_000n, 'zstd'],
    [1_790_000_000_000n, 'zstd'],
  ]);
});

test('a message whose target is not allowed is released, unless an operator chose the target', async () => {
  const deps = { ...createDeps(() => acked), isAllowedTarget: () => false };
  const messages = [claimed('m-0', 1), { ...claimed('m-1', 1), isRouted: true }];
  const published = await publishClaimed(deps, { lease, messages });
  assert.equal(published.get('m-0')?.release, 'not_allowed');
  assert.equal(published.get('m-1')?.outcome.end, 'published');
  assert.deepEqual(deps.calls, [['m-1']]);
});
