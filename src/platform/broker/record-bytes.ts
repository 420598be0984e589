import type { OutgoingRecord } from './port.ts';

/** The maximum size of lengths, deltas and attributes of a record or a header. */
const recordOverheadBytes = 32;
const headerOverheadBytes = 10;

/** An upper bound for the size of the record in an uncompressed batch. */
export function recordBytes({ key, value, headers }: Omit<OutgoingRecord, 'topic'>): number {
  let bytes = recordOverheadBytes + (key?.length ?? 0) + (value?.length ?? 0);
  for (const header of headers)
    bytes += headerOverheadBytes + header.key.length + (header.value?.length ?? 0);
  return bytes;
}
