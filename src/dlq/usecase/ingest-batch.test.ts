import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { DeadLetter } from '../domain/dead-letter.ts';
import { ingestBatch } from './ingest-batch.ts';
import type { Batch, HeldPartition } from './ports.ts';

const held: HeldPartition = {
  id: 1n,
  topic: 'orders.dlq.v1',
  topicId: '00000000-0000-4000-8000-000000000000',
  partition: 0,
  nextOffset: 0n,
  highOffset: 0n,
  backfillUntil: null,
  lease: { owner: 'me', epoch: 1n, endsAtMs: Number.POSITIVE_INFINITY },
};

/** Stores nothing, and keeps what it was asked to store. */
async function collect(at: HeldPartition, offsets: readonly bigint[], nextOffset: bigint): Promise<Batch[]> {
  const batches: Batch[] = [];
  await ingestBatch(
    {
      ingest: { store: async (_held, batch) => (batches.push(batch), true), skipLost: async () => true },
      decode: (record) => ({ record, lineage: null }) as DeadLetter,
      maxRetries: 3,
    },
    at,
    {
      records: offsets.map((offset) => ({ offset, timestamp: 0n, key: null, value: null, headers: [] })),
      nextOffset,
      start: 0n,
      end: nextOffset,
    },
  );
  return batches;
}

test('batches follow each other without a gap, hold every record, and never cross a border', async () => {
  const positions = fc.record({
    next: fc.integer({ min: 0, max: 50 }),
    high: fc.integer({ min: 0, max: 6000 }),
    backfill: fc.option(fc.integer({ min: 0, max: 100 })),
    length: fc.integer({ min: 1, max: 4000 }),
    keep: fc.integer({ min: 1, max: 5 }),
  });
  await fc.assert(
    fc.asyncProperty(positions, async ({ next, high, backfill, length, keep }) => {
      const at = {
        ...held,
        nextOffset: BigInt(next),
        highOffset: BigInt(Math.max(next, high, backfill ?? 0)),
        backfillUntil: backfill === null || backfill <= next ? null : BigInt(backfill),
      };
      const end = BigInt(next + length);
      const offsets = Array.from({ length }, (_, i) => BigInt(next + i)).filter(
        (o) => Number(o) % keep === 0,
      );
      const batches = await collect(at, offsets, end);
      assert.equal(batches[0]?.from, at.nextOffset);
      assert.equal(batches.at(-1)?.next, end);
      batches.forEach((batch, i) => {
        assert.ok(batch.from < batch.next);
        if (i > 0) assert.equal(batch.from, batches[i - 1]?.next);
        assert.ok(batch.letters.length <= 1000);
        for (const border of [at.highOffset, at.backfillUntil])
          assert.ok(border === null || border <= batch.from || border >= batch.next);
        for (const { record } of batch.letters)
          assert.ok(record.offset >= batch.from && record.offset < batch.next);
      });
      assert.deepEqual(
        batches.flatMap(({ letters }) => letters.map(({ record }) => record.offset)),
        offsets,
      );
    }),
  );
});
