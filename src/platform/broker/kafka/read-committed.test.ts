import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RecordsBatch } from '@platformatic/kafka';
import * as fc from 'fast-check';
import { readCommitted, type AbortedTransaction } from './read-committed.ts';

const transactional = 16;
const control = 32;
const logAppendTime = 8;

type BatchShape = Readonly<{
  firstOffset: bigint;
  count: number;
  producerId?: bigint;
  attributes?: number;
  marker?: number;
}>;

function batch({ firstOffset, count, producerId = -1n, attributes = 0, marker }: BatchShape): RecordsBatch {
  const key = marker === undefined ? null : Buffer.from([0, 0, 0, marker]);
  const unused = { length: 0, partitionLeaderEpoch: 0, magic: 2, crc: 0, producerEpoch: 0, firstSequence: 0 };
  const times = { firstTimestamp: 1000n, maxTimestamp: 2000n };
  return {
    ...unused,
    ...times,
    firstOffset,
    attributes,
    producerId,
    lastOffsetDelta: count - 1,
    records: Array.from({ length: count }, (_, offsetDelta) => ({
      length: 0,
      attributes: 0,
      timestampDelta: BigInt(offsetDelta),
      offsetDelta,
      key,
      value: null,
      headers: [],
    })),
  };
}

const offsetsOf = (result: ReturnType<typeof readCommitted>): readonly bigint[] =>
  result.records.map(({ offset }) => offset);

test('records before the requested offset are skipped, and the next offset is after the batch', () => {
  const result = readCommitted([batch({ firstOffset: 10n, count: 5 })], [], 12n);
  assert.deepEqual(offsetsOf(result), [12n, 13n, 14n]);
  assert.equal(result.nextOffset, 15n);
});

test('without batches the position does not change', () => {
  assert.deepEqual(readCommitted([], [], 7n), { records: [], skipped: [], nextOffset: 7n });
});

test('an empty batch, as compaction leaves it, moves the position', () => {
  const compacted = { ...batch({ firstOffset: 3n, count: 4 }), records: [] };
  const skipped = [{ kind: 'gap', from: 3n, to: 7n }];
  assert.deepEqual(readCommitted([compacted], [], 3n), { records: [], skipped, nextOffset: 7n });
});

test('batches that compaction has removed are a gap before the next one', () => {
  const batches = [batch({ firstOffset: 0n, count: 2 }), batch({ firstOffset: 5n, count: 1 })];
  assert.deepEqual(readCommitted(batches, [], 0n).skipped, [{ kind: 'gap', from: 2n, to: 5n }]);
});

test('a record has its own timestamp, or that of the log if the topic is configured so', () => {
  const own = readCommitted([batch({ firstOffset: 0n, count: 2 })], [], 1n);
  const log = readCommitted([batch({ firstOffset: 0n, count: 2, attributes: logAppendTime })], [], 1n);
  assert.deepEqual([own.records[0]?.timestamp, log.records[0]?.timestamp], [1001n, 2000n]);
});

test('the abort marker of an empty transaction drops nothing of the producer', () => {
  const batches = [
    batch({ firstOffset: 0n, count: 1, producerId: 5n, attributes: transactional | control, marker: 0 }),
    batch({ firstOffset: 1n, count: 2, producerId: 5n, attributes: transactional }),
    batch({ firstOffset: 3n, count: 1, producerId: 5n, attributes: transactional | control, marker: 1 }),
  ];
  assert.deepEqual(offsetsOf(readCommitted(batches, [], 0n)), [1n, 2n]);
});

type Step = Readonly<{ kind: 'data' | 'plain' | 'commit' | 'abort'; producer: number; count: number }>;

/** A partition's log as the broker would write it, and for each offset whether a committed record is there. */
function writeLog(steps: readonly Step[]) {
  const batches: RecordsBatch[] = [];
  const aborted: (AbortedTransaction & { lastOffset: bigint })[] = [];
  const openSince = new Map<number, bigint[]>();
  const committed = new Set<bigint>();
  const markers = new Set<bigint>();
  let offset = 0n;
  const write = (shape: Omit<BatchShape, 'firstOffset'>): void => {
    batches.push(batch({ ...shape, firstOffset: offset }));
    offset += BigInt(shape.count);
  };
  const end = (producer: number, isCommit: boolean): void => {
    const written = openSince.get(producer) ?? [];
    const producerId = BigInt(producer);
    if (isCommit) for (const at of written) committed.add(at);
    else if (written[0] !== undefined)
      aborted.push({ producerId, firstOffset: written[0], lastOffset: offset });
    openSince.delete(producer);
    markers.add(offset);
    write({ count: 1, producerId, attributes: transactional | control, marker: isCommit ? 1 : 0 });
  };
  for (const { kind, producer, count } of steps) {
    const offsets = Array.from({ length: count }, (_, at) => offset + BigInt(at));
    if (kind === 'plain') {
      for (const at of offsets) committed.add(at);
      write({ count });
    } else if (kind === 'data') {
      openSince.set(producer, [...(openSince.get(producer) ?? []), ...offsets]);
      write({ count, producerId: BigInt(producer), attributes: transactional });
    } else end(producer, kind === 'commit');
  }
  for (const producer of openSince.keys()) end(producer, false);
  return { batches, aborted, committed, markers, end: offset };
}

const step = fc.record({
  kind: fc.constantFrom(
    'data' as const,
    'data' as const,
    'plain' as const,
    'commit' as const,
    'abort' as const,
  ),
  producer: fc.integer({ min: 1, max: 3 }),
  count: fc.integer({ min: 1, max: 4 }),
});

/** Compaction removes records and keeps their batches, or the last offset of them at least. */
const compact = (batches: readonly RecordsBatch[], removed: (offset: bigint) => boolean): RecordsBatch[] =>
  batches.map((one) => ({
    ...one,
    records: one.records.filter(
      ({ offsetDelta }) => one.attributes & control || !removed(one.firstOffset + BigInt(offsetDelta)),
    ),
  }));

test('reading batch by batch, from any offset, returns exactly the committed records and the kinds of all other offsets', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 40 }),
      fc.integer({ min: 1, max: 6 }),
      fc.nat(),
      fc.integer({ min: 2, max: 9 }),
      (steps, window, from, compacted) => {
        const { batches: written, aborted, committed, markers, end } = writeLog(steps);
        const isRemoved = (offset: bigint): boolean =>
          offset % BigInt(compacted) === 1n && !markers.has(offset);
        const batches = compact(written, isRemoved);
        const begin = end === 0n ? 0n : BigInt(from) % end;
        const seen: bigint[] = [];
        const skipped = new Map<bigint, string>();
        for (let offset = begin; offset < end;) {
          const first = batches.findIndex((one) => one.firstOffset + BigInt(one.lastOffsetDelta) >= offset);
          const some = batches.slice(first, first + window);
          const upper = (some.at(-1)?.firstOffset ?? 0n) + BigInt((some.at(-1)?.lastOffsetDelta ?? 0) + 1);
          const inRange = aborted.filter((one) => one.lastOffset >= offset && one.firstOffset < upper);
          const result = readCommitted(some, inRange.toReversed(), offset);
          seen.push(...offsetsOf(result));
          for (const { kind, from: first, to } of result.skipped)
            for (let at = first; at < to; at += 1n) skipped.set(at, kind);
          assert.equal(result.nextOffset, upper);
          offset = result.nextOffset;
        }
        const expected: bigint[] = [];
        for (let at = begin; at < end; at += 1n) {
          const isRecord = committed.has(at) && !isRemoved(at);
          if (isRecord) expected.push(at);
          const kind = isRemoved(at) ? 'gap' : markers.has(at) ? 'control' : 'aborted';
          assert.equal(skipped.get(at), isRecord ? undefined : kind);
        }
        assert.deepEqual(seen, expected);
      },
    ),
  );
});
