import type { RecordsBatch } from '@platformatic/kafka';
import type { BrokerRecord, Header } from '../port.ts';

export type AbortedTransaction = Readonly<{ producerId: bigint; firstOffset: bigint }>;

export type CommittedRecords = Readonly<{ records: readonly BrokerRecord[]; nextOffset: bigint }>;

const isLogAppendTime = 8;
const isTransactional = 16;
const isControl = 32;
const abortMarker = 0;

/**
 * What a read-committed reader sees of the batches, by the rules of the Java client. A producer is "aborting"
 * from the first offset of each of its aborted transactions until its abort marker; its transactional batches
 * in between are dropped. Markers are no records. A compressed batch may begin before the wanted offset: those
 * records were read earlier. The next offset lies behind the last batch, whether or not it held records.
 */
export function readCommitted(
  batches: readonly RecordsBatch[],
  abortedTransactions: readonly AbortedTransaction[],
  from: bigint,
): CommittedRecords {
  const waiting = abortedTransactions.toSorted((a, b) => Number(a.firstOffset - b.firstOffset));
  const aborting = new Set<bigint>();
  const records: BrokerRecord[] = [];
  let next = 0;
  let nextOffset = from;
  for (const batch of batches) {
    const lastOffset = batch.firstOffset + BigInt(batch.lastOffsetDelta);
    for (let aborted = waiting[next]; aborted && aborted.firstOffset <= lastOffset; aborted = waiting[++next])
      aborting.add(aborted.producerId);
    if (batch.attributes & isControl) {
      if (markerType(batch) === abortMarker) aborting.delete(batch.producerId);
    } else if (!(batch.attributes & isTransactional && aborting.has(batch.producerId))) {
      appendRecords(records, batch, from);
    }
    if (lastOffset >= nextOffset) nextOffset = lastOffset + 1n;
  }
  return { records, nextOffset };
}

/** The key of a control record is its version and its type, two bytes each. */
function markerType(batch: RecordsBatch): number | undefined {
  const key = batch.records[0]?.key;
  return key && key.length >= 4 ? key.readInt16BE(2) : undefined;
}

function appendRecords(records: BrokerRecord[], batch: RecordsBatch, from: bigint): void {
  const appendTime = batch.attributes & isLogAppendTime ? batch.maxTimestamp : undefined;
  for (const { offsetDelta, timestampDelta, key, value, headers } of batch.records) {
    const offset = batch.firstOffset + BigInt(offsetDelta);
    if (offset < from) continue;
    const timestamp = appendTime ?? batch.firstTimestamp + timestampDelta;
    records.push({ offset, timestamp, key, value, headers: headers.map(toHeader) });
  }
}

const noBytes = Buffer.alloc(0);

const toHeader = ([key, value]: readonly [Buffer | null, Buffer | null]): Header => ({
  key: key ?? noBytes,
  value,
});
