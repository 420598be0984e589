import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { DeadLetter } from '../domain/dead-letter.ts';
import type { LeasedPartition } from './partitions-table.ts';
import { splitFetched, type Batch } from './split-fetched.ts';

const leased: LeasedPartition = {
  id: 1n,
  topic: 'orders.dlq.v1',
  topicId: '00000000-0000-4000-8000-000000000000',
  partition: 0,
  nextOffset: 0n,
  highOffset: 0n,
  backfillUntil: null,
  lease: { owner: 'me', epoch: 1n, endsAtMs: Number.POSITIVE_INFINITY },
};

function split(
  at: LeasedPartition,
  offsets: readonly bigint[],
  nextOffset: bigint,
  bytesOf: (offset: bigint) => number = () => 0,
): readonly Batch[] {
  const letters = offsets.map((offset) => {
    const record = { offset, key: null, value: Buffer.alloc(bytesOf(offset)) };
    return { record, lineage: null } as unknown as DeadLetter;
  });
  const ends = { start: 0n, end: nextOffset, stableEnd: nextOffset };
  return splitFetched(at, letters, { records: [], skipped: [], nextOffset, ...ends });
}

test('a batch has at most 8 MiB, and a larger record has a batch of its own', () => {
  const megabytes = [3, 3, 3, 20, 1, 8, 8].map((size) => size << 20);
  const offsets = megabytes.map((_, i) => BigInt(i));
  const batches = split(leased, offsets, 7n, (offset) => megabytes[Number(offset)] ?? 0);
  assert.deepEqual(
    batches.map(({ letters }) => letters.map(({ record }) => Number(record.offset))),
    [[0, 1], [2], [3], [4], [5], [6]],
  );
});

test('batches have no gaps between them, contain every record, and never cross a border', () => {
  const positions = fc.record({
    next: fc.integer({ min: 0, max: 50 }),
    high: fc.integer({ min: 0, max: 6000 }),
    backfill: fc.option(fc.integer({ min: 0, max: 100 })),
    length: fc.integer({ min: 1, max: 4000 }),
    keep: fc.integer({ min: 1, max: 5 }),
  });
  fc.assert(
    fc.property(positions, ({ next, high, backfill, length, keep }) => {
      const at = {
        ...leased,
        nextOffset: BigInt(next),
        highOffset: BigInt(Math.max(next, high, backfill ?? 0)),
        backfillUntil: backfill === null || backfill <= next ? null : BigInt(backfill),
      };
      const end = BigInt(next + length);
      const offsets = Array.from({ length }, (_, i) => BigInt(next + i)).filter(
        (o) => Number(o) % keep === 0,
      );
      const batches = split(at, offsets, end);
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
