import type { OutgoingRecord } from './port.ts';

/** Lengths, deltas and attributes of a record or a header, at their longest. */
const recordOverheadBytes = 32;
const headerOverheadBytes = 10;

/** At least what the record takes in an uncompressed batch. */
export function recordBytes({ key, value, headers }: Omit<OutgoingRecord, 'topic'>): number {
  let bytes = recordOverheadBytes + (key?.length ?? 0) + (value?.length ?? 0);
  for (const header of headers)
    bytes += headerOverheadBytes + header.key.length + (header.value?.length ?? 0);
  return bytes;
}
