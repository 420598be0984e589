import type { RecordsBatch } from '@platformatic/kafka';
import type { BrokerRecord, Compression, Header, SkippedRange } from '../port.ts';

export type AbortedTransaction = Readonly<{ producerId: bigint; firstOffset: bigint }>;

export type CommittedRecords = Readonly<{
  records: readonly BrokerRecord[];
  skipped: readonly SkippedRange[];
  nextOffset: bigint;
}>;

/** By their numbers in the attributes of a batch. */
const codecs: readonly Compression[] = ['none', 'gzip', 'snappy', 'lz4', 'zstd'];
const codecBits = 7;
const isLogAppendTime = 8;
const isTransactional = 16;
const isControl = 32;
const abortMarker = 0;

/**
 * The records that a read-committed reader gets from the batches, by the rules of the Java client. A producer is
 * "aborting" from the first offset of each of its aborted transactions until its abort marker; its transactional
 * batches in between are dropped. Markers are not records. A compressed batch may begin before the requested offset:
 * those records were read earlier. The next offset is after the last batch, with or without records. Every offset in
 * between is reported as a record, a marker, an aborted record or a gap.
 */
export function readCommitted(
  batches: readonly RecordsBatch[],
  abortedTransactions: readonly AbortedTransaction[],
  from: bigint,
): CommittedRecords {
  const waiting = abortedTransactions.toSorted((a, b) => Number(a.firstOffset - b.firstOffset));
  const aborting = new Set<bigint>();
  const records: BrokerRecord[] = [];
  const skipped: SkippedRange[] = [];
  let next = 0;
  let nextOffset = from;
  for (const batch of batches) {
    const lastOffset = batch.firstOffset + BigInt(batch.lastOffsetDelta);
    for (let aborted = waiting[next]; aborted && aborted.firstOffset <= lastOffset; aborted = waiting[++next])
      aborting.add(aborted.producerId);
    const kind = kindOf(batch, aborting);
    for (const record of batch.records) {
      const offset = batch.firstOffset + BigInt(record.offsetDelta);
      if (offset < nextOffset) continue;
      skip(skipped, 'gap', nextOffset, offset);
      if (kind === 'data') records.push(toRecord(batch, record, offset));
      else skip(skipped, kind, offset, offset + 1n);
      nextOffset = offset + 1n;
    }
    skip(skipped, 'gap', nextOffset, lastOffset + 1n);
    if (lastOffset >= nextOffset) nextOffset = lastOffset + 1n;
    if (kind === 'control' && markerType(batch) === abortMarker) aborting.delete(batch.producerId);
  }
  return { records, skipped, nextOffset };
}

function kindOf(
  { attributes, producerId }: RecordsBatch,
  aborting: ReadonlySet<bigint>,
): 'data' | 'control' | 'aborted' {
  if (attributes & isControl) return 'control';
  return attributes & isTransactional && aborting.has(producerId) ? 'aborted' : 'data';
}

/** Merges adjacent ranges of a kind: a million aborted records are one range. */
function skip(skipped: SkippedRange[], kind: SkippedRange['kind'], from: bigint, to: bigint): void {
  if (from >= to) return;
  const last = skipped.at(-1);
  if (last?.kind === kind && last.to === from) skipped[skipped.length - 1] = { ...last, to };
  else skipped.push({ kind, from, to });
}

/** The key of a control record has its version and its type, two bytes each. */
function markerType(batch: RecordsBatch): number | undefined {
  const key = batch.records[0]?.key;
  return key && key.length >= 4 ? key.readInt16BE(2) : undefined;
}

function toRecord(
  batch: RecordsBatch,
  { timestampDelta, key, value, headers }: RecordsBatch['records'][number],
  offset: bigint,
): BrokerRecord {
  const isAppendTime = (batch.attributes & isLogAppendTime) !== 0;
  const timestamp = isAppendTime ? batch.maxTimestamp : batch.firstTimestamp + timestampDelta;
  const compression = codecs[batch.attributes & codecBits] ?? 'none';
  return { offset, timestamp, key, value, headers: headers.map(toHeader), compression };
}

const noBytes = Buffer.alloc(0);

const toHeader = ([key, value]: readonly [Buffer | null, Buffer | null]): Header => ({
  key: key ?? noBytes,
  value,
});
