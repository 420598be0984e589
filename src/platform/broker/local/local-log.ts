import type { BrokerRecord, OutgoingRecord } from '../port.ts';
import { recordBytes } from '../record-bytes.ts';

export type LogLimits = Readonly<{ records: number; bytes: number }>;

/** One partition in memory. It keeps the newest records within its limits and always the last one. */
export type LocalLog = Readonly<{
  start(): bigint;
  end(): bigint;
  append(record: OutgoingRecord, timestamp: bigint): bigint;
  /** From the offset on, up to about so many bytes, and at least one record if there is one. */
  read(from: bigint, maxBytes: number): readonly BrokerRecord[];
  offsetAt(timestamp: bigint): bigint;
}>;

export function createLocalLog(limits: LogLimits): LocalLog {
  const records: BrokerRecord[] = [];
  let bytes = 0;
  let end = 0n;
  const start = (): bigint => records[0]?.offset ?? end;

  return {
    start,
    end: () => end,
    append: (record, timestamp) => {
      const offset = end;
      records.push({ offset, timestamp, ...copyOf(record) });
      bytes += recordBytes(record);
      end += 1n;
      while (records.length > 1 && (records.length > limits.records || bytes > limits.bytes)) {
        const dropped = records.shift();
        if (dropped) bytes -= recordBytes(dropped);
      }
      return offset;
    },
    read: (from, maxBytes) => {
      const first = Number(from - start());
      let taken = first;
      let size = 0;
      for (let record = records[taken]; record; record = records[++taken]) {
        size += recordBytes(record);
        if (size > maxBytes && taken > first) break;
      }
      return records.slice(first, taken);
    },
    offsetAt: (timestamp) => records.find((record) => record.timestamp >= timestamp)?.offset ?? end,
  };
}

/** What was published stays as it was, whatever the publisher does with its buffers afterwards. */
function copyOf({ key, value, headers }: OutgoingRecord): Pick<BrokerRecord, 'key' | 'value' | 'headers'> {
  return {
    key: copy(key),
    value: copy(value),
    headers: headers.map((header) => ({ key: Buffer.from(header.key), value: copy(header.value) })),
  };
}

const copy = (bytes: Buffer | null): Buffer | null => bytes && Buffer.from(bytes);
