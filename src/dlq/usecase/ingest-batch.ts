import { planArrivals } from '../domain/arrivals.ts';
import type { DeadLetter } from '../domain/dead-letter.ts';
import type { PartitionRef, RawRecord } from '../domain/record.ts';
import type { Batch, HeldPartition, IngestStore } from './ports.ts';

export type IngestDeps = Readonly<{
  ingest: IngestStore;
  /** Bytes to what failed, where and why. Never throws: a record that makes no sense is still a dead letter. */
  decode: (record: RawRecord, source: PartitionRef) => DeadLetter;
  maxRetries: number;
}>;

export type Fetched = Readonly<{
  records: readonly RawRecord[];
  nextOffset: bigint;
  start: bigint;
  end: bigint;
}>;

/** One statement stores at most this many rows: more gain nothing and hold locks longer. */
const rowsPerStatement = 1000;

/**
 * Stores what was fetched from a held partition, in order. Returns how far it got: the held partition at its
 * new position, or null when the lease was lost on the way; what was stored before that stays stored.
 */
export async function ingestBatch(
  deps: IngestDeps,
  held: HeldPartition,
  fetched: Fetched,
): Promise<HeldPartition | null> {
  const letters = fetched.records.map((record) => deps.decode(record, held));
  let at = held;
  for (const batch of split(held, letters, fetched)) {
    // Records read before, and messages of ours that come back, need a look at what is there already.
    const isFresh = batch.from >= at.highOffset && batch.letters.every((letter) => letter.lineage === null);
    const plan: Parameters<IngestStore['store']>[2] = isFresh
      ? null
      : (part, known, taken) => planArrivals(part, known, taken, deps.maxRetries);
    if (!(await deps.ingest.store(at, batch, plan))) return null;
    at = moved(at, batch.next);
  }
  return at;
}

function moved(held: HeldPartition, next: bigint): HeldPartition {
  return {
    ...held,
    nextOffset: next,
    highOffset: next > held.highOffset ? next : held.highOffset,
    backfillUntil: held.backfillUntil !== null && next < held.backfillUntil ? held.backfillUntil : null,
  };
}

/**
 * Cuts the fetched range into batches that each lie on one side of the two borders that change how records
 * are counted (the end of a backfill, and the greatest position ever reached) and that are not too large.
 */
function split(held: HeldPartition, letters: readonly DeadLetter[], fetched: Fetched): readonly Batch[] {
  const borders = [held.backfillUntil, held.highOffset].filter(
    (border): border is bigint => border !== null && border > held.nextOffset && border < fetched.nextOffset,
  );
  const batches: Batch[] = [];
  let from = held.nextOffset;
  let rest = letters;
  const cut = (next: bigint, count: number): void => {
    const { start, end } = fetched;
    batches.push({ from, next, letters: rest.slice(0, count), logStart: start, logEnd: end });
    rest = rest.slice(count);
    from = next;
  };
  for (const border of [...borders, fetched.nextOffset]) {
    const inside = rest.findIndex((letter) => letter.record.offset >= border);
    let left = inside === -1 ? rest.length : inside;
    for (; left > rowsPerStatement; left -= rowsPerStatement)
      cut(rest[rowsPerStatement]?.record.offset ?? border, rowsPerStatement);
    if (from < border) cut(border, left);
  }
  return batches;
}
