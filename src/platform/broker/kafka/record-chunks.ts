import type { Compression, OutgoingRecord } from '../port.ts';
import { recordBytes } from '../record-bytes.ts';

export type ChunkLimits = Readonly<{ records: number; bytes: number }>;

/** A record and its index in the caller's list. */
export type Placed = Readonly<{ record: OutgoingRecord; index: number }>;

export type TakenChunk = Readonly<{
  chunk: readonly Placed[];
  compression: Compression;
  /** What is still to be sent, in order. */
  rest: readonly Placed[];
}>;

/** Null if there is no order to keep. */
export const orderKey = ({ key }: OutgoingRecord): string | null => key && key.toString('latin1');

/**
 * The next batch to send: as many records as the limits allow, but at least one, because a record that exceeds the
 * limits is sent alone and the broker decides. A batch has one codec: records with another codec are left for a later
 * batch, and so are later records with the same key.
 */
export function takeChunk(waiting: readonly Placed[], limits: ChunkLimits): TakenChunk {
  const compression = codecOf(waiting[0]);
  const chunk: Placed[] = [];
  const passedOver: Placed[] = [];
  const keysPassedOver = new Set<string>();
  let bytes = 0;
  let at = 0;
  for (let placed = waiting[at]; placed && chunk.length < limits.records; placed = waiting[++at]) {
    if (codecOf(placed) !== compression || isBehind(placed, keysPassedOver)) {
      const key = orderKey(placed.record);
      if (key !== null) keysPassedOver.add(key);
      passedOver.push(placed);
      continue;
    }
    bytes += recordBytes(placed.record);
    if (bytes > limits.bytes && chunk.length > 0) break;
    chunk.push(placed);
  }
  return { chunk, compression, rest: [...passedOver, ...waiting.slice(at)] };
}

function codecOf(placed: Placed | undefined): Compression {
  const compression = placed?.record.compression ?? 'none';
  return compression === 'unknown' ? 'none' : compression;
}

function isBehind({ record }: Placed, keys: ReadonlySet<string>): boolean {
  if (keys.size === 0) return false;
  const key = orderKey(record);
  return key !== null && keys.has(key);
}
