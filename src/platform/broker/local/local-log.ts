import type { BrokerRecord, Compression, OutgoingRecord } from '../port.ts';
import { recordBytes } from '../record-bytes.ts';

/**
 * One partition in memory. It keeps the newest records within `maxBytes`, and always the last one. As in Kafka, the log
 * start moves, and a fetch below it fails with `out_of_range`.
 */
export type LocalLog = Readonly<{
  start(): bigint;
  end(): bigint;
  append(record: OutgoingRecord, timestamp: bigint, compression: Compression): bigint;
  /** Records from the offset on, up to about this many bytes, but at least one if there is one. */
  read(from: bigint, maxBytes: number): readonly BrokerRecord[];
  offsetAt(timestamp: bigint): bigint;
}>;

export function createLocalLog(maxBytes: number): LocalLog {
  const records: BrokerRecord[] = [];
  let bytes = 0;
  let end = 0n;
  const start = (): bigint => records[0]?.offset ?? end;

  return {
    start,
    end: () => end,
    append: (record, timestamp, compression) => {
      const offset = end;
      records.push({ offset, timestamp, compression, ...ownCopyOf(record) });
      bytes += storedBytes(record);
      end += 1n;
      let expired = 0;
      for (; expired < records.length - 1 && bytes > maxBytes; expired += 1)
        bytes -= storedBytes(records[expired] ?? record);
      records.splice(0, expired);
      return offset;
    },
    read: (from, maxBytesRead) => {
      const first = Number(from - start());
      let taken = first;
      let size = 0;
      for (let record = records[taken]; record; record = records[++taken]) {
        size += recordBytes(record);
        if (size > maxBytesRead && taken > first) break;
      }
      return records.slice(first, taken);
    },
    offsetAt: (timestamp) => records.find((record) => record.timestamp >= timestamp)?.offset ?? end,
  };
}

type Content = Pick<OutgoingRecord, 'key' | 'value' | 'headers'>;

/** Measured on V8: the objects of a record, and of each header. Of small records they are larger than the bytes. */
const recordObjectBytes = 450;
const headerObjectBytes = 290;

/** The memory of a stored record. */
export function storedBytes(content: Content): number {
  return recordObjectBytes + contentBytes(content) + headerObjectBytes * content.headers.length;
}

function contentBytes({ key, value, headers }: Content): number {
  let bytes = (key?.length ?? 0) + (value?.length ?? 0);
  for (const header of headers) bytes += header.key.length + (header.value?.length ?? 0);
  return bytes;
}

/**
 * Copies the record into one allocation of its own. The publisher may reuse its buffers, and a slice of a larger buffer
 * (a socket chunk, or the pool of `Buffer.from`) would keep all of it in memory.
 */
function ownCopyOf(content: Content): Content {
  const own = Buffer.allocUnsafeSlow(contentBytes(content));
  let at = 0;
  const copy = (bytes: Buffer): Buffer => {
    const from = at;
    at += bytes.copy(own, from);
    return own.subarray(from, at);
  };
  return {
    key: content.key && copy(content.key),
    value: content.value && copy(content.value),
    headers: content.headers.map(({ key, value }) => ({ key: copy(key), value: value && copy(value) })),
  };
}
