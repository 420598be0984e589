import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ActivePartition, HeldPartitions } from './held-partitions.ts';
import type { HeldPartition, IngestStore, PartitionStore, Source } from './ports.ts';
import { readNode, type ReadDeps } from './read-node.ts';

const held: HeldPartition = {
  id: 1n,
  topic: 'orders.dlq.v1',
  topicId: '00000000-0000-4000-8000-000000000000',
  partition: 0,
  nextOffset: 4n,
  highOffset: 4n,
  backfillUntil: null,
  lease: { owner: 'me', epoch: 1n, endsAtMs: Number.POSITIVE_INFINITY },
};

test('an error of a partition without news is noted once and cleared once, when the broker is back', async () => {
  const stopping = new AbortController();
  const log: string[] = [];
  const active: ActivePartition = {
    held,
    node: 1,
    isBusy: false,
    isLeaving: false,
    pausedUntilMs: 0,
    failures: 0,
    mayShowError: false,
    beyondEndSinceMs: null,
  };
  let fetches = 0;
  const deps: ReadDeps = {
    source: {
      async fetch() {
        fetches += 1;
        if (fetches === 1) throw new Error('the broker is away');
        if (fetches === 4) stopping.abort();
        return [{ ...held, records: [], nextOffset: 4n, start: 0n, end: 4n }];
      },
    } as Partial<Source> as Source,
    partitions: {
      noteError: async (_held, error) => void log.push(error),
      clearError: async () => void log.push('cleared'),
    } as Partial<PartitionStore> as PartitionStore,
    held: {
      all: () => [active],
      drop: () => {},
      giveBack: async () => {},
    } as Partial<HeldPartitions> as HeldPartitions,
    ingest: {} as IngestStore,
    decode: () => assert.fail('there is nothing to decode'),
    maxRetries: 3,
    clock: { now: () => new Date(), monotonicMs: () => 0 },
    maxBytesInFlight: 1 << 26,
    onStored: () => {},
    onTrouble: () => {},
    onStale: () => {},
    onMoved: () => {},
  };
  await readNode(deps, 1, { bytes: 0 }, stopping.signal);
  assert.deepEqual(log, ['the broker is away', 'cleared']);
});
