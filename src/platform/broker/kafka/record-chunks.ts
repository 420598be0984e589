import type { OutgoingRecord } from '../port.ts';
import { recordBytes } from '../record-bytes.ts';

export type ChunkLimits = Readonly<{ records: number; bytes: number }>;

/**
 * The end of the chunk that begins at `from`: as many records as the limits allow, and always one, because a
 * record that is larger than a chunk goes alone and the broker decides about it.
 */
export function chunkEnd(records: readonly OutgoingRecord[], from: number, limits: ChunkLimits): number {
  let bytes = 0;
  let end = from;
  for (let record = records[end]; record && end - from < limits.records; record = records[++end]) {
    bytes += recordBytes(record);
    if (bytes > limits.bytes && end > from) return end;
  }
  return end;
}
