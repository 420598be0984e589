import { trace } from '@opentelemetry/api';
import type { BrokerRecord, PartitionRef } from '../../kernel/broker-record.ts';
import { AppError, codeOf } from '../../kernel/errors.ts';
import { remainingMs } from '../../kernel/lease.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { batchOptions } from '../../platform/telemetry/message-spans.ts';
import { inSpan } from '../../platform/telemetry/with-span.ts';
import { storeBatch } from '../../platform/work/store-batch.ts';
import type { Worker } from '../../platform/work/work.ts';
import type { LookupHashes, Payloads } from '../domain/payloads.ts';
import { undecodable, type DeadLetter } from '../domain/dead-letter.ts';
import { insertBatch } from './insert-batch.ts';
import { matchWatched } from './match-watched.ts';
import { mergeBatch, type MergeOptions } from './merge-batch.ts';
import type { StoreFingerprints } from './store-fingerprints.ts';
import type { RowOptions } from './message-rows.ts';
import type { LeasedPartition } from './partitions-table.ts';
import { splitFetched, type Batch, type Fetched } from './split-fetched.ts';

const tracer = trace.getTracer('redrive');

export type StoreDeps = Omit<RowOptions, 'sealerFor'> &
  Readonly<{
    payloads: Payloads;
    db: Database;
    worker: Worker;
    /** Never throws: a record that cannot be decoded is still a dead letter. */
    decode: (record: BrokerRecord, source: PartitionRef) => DeadLetter;
    storeFingerprints: StoreFingerprints;
    /** Called after the commit. */
    onInserted: (topic: string, ids: readonly string[]) => void;
    /** Called after the commit, for dead letters that were read for the first time. */
    onRead: (topic: string, letters: readonly DeadLetter[]) => void;
  }>;

/**
 * Decodes what was fetched from a leased partition and stores it in order, in batches. Returns the partition at its
 * new position, or null if the lease was lost; batches stored before that stay stored.
 */
export async function storeFetched(
  deps: StoreDeps,
  leased: LeasedPartition,
  fetched: Fetched,
): Promise<LeasedPartition | null> {
  const letters = fetched.records.map((record) => deps.decode(record, leased));
  const sealing = await prepareSealing(deps, leased, letters);
  let current = leased;
  for (const batch of splitFetched(leased, letters, fetched)) {
    if (!(await storeInOrder({ ...deps, ...sealing }, current, batch))) return null;
    current = movedTo(current, batch.next);
  }
  return current;
}

type Sealing = Required<Pick<MergeOptions, 'sealerFor' | 'hashes'>>;

/**
 * Throws if a record is to be encrypted and there is no key: the partition waits, and is read again. Messages in the
 * clear need no key.
 */
async function prepareSealing(
  { payloads }: StoreDeps,
  { topic }: LeasedPartition,
  letters: readonly DeadLetter[],
): Promise<Sealing> {
  const isProtected = ({ originalTopic }: DeadLetter): boolean =>
    payloads.isProtected([originalTopic, topic]);
  const sealer = letters.some(isProtected) ? await payloads.sealer() : null;
  const hashes = async (): Promise<LookupHashes | null> =>
    sealer ??
    payloads.hashes().catch((error: unknown) => {
      if (error instanceof AppError) return null;
      throw error;
    });
  return { sealerFor: (letter) => (isProtected(letter) ? sealer : null), hashes };
}

function movedTo(leased: LeasedPartition, next: bigint): LeasedPartition {
  const { highOffset, backfillUntil } = leased;
  return {
    ...leased,
    nextOffset: next,
    highOffset: next > highOffset ? next : highOffset,
    backfillUntil: backfillUntil !== null && next < backfillUntil ? backfillUntil : null,
  };
}

/** Ends the halving of a batch at once when the lease is lost. */
class LeaseLost extends Error {}

/**
 * Stores a batch and the new position, in one transaction. If the database rejects the data, it stores the batch in
 * ever smaller parts, and a record whose fields are rejected with its bytes alone. False if the lease was lost.
 */
async function storeInOrder(
  deps: StoreDeps & Sealing,
  leased: LeasedPartition,
  batch: Batch,
): Promise<boolean> {
  if (batch.letters.length === 0) return storePart(deps, leased, batch);
  let from = batch.from;
  const store = async (letters: readonly DeadLetter[]): Promise<void> => {
    const last = letters.at(-1)?.record.offset ?? from;
    const isEnd = last === batch.letters.at(-1)?.record.offset;
    const next = isEnd ? batch.next : last + 1n;
    if (!(await storePart(deps, leased, { ...batch, from, next, letters }))) throw new LeaseLost();
    from = next;
  };
  const { topic, partition } = leased;
  const storeAll = (): Promise<void> =>
    storeBatch(batch.letters, {
      store,
      storeBad: (letter, error) => store([undecodable(letter, topic, codeOf(error) ?? 'unknown')]),
      until: AbortSignal.timeout(Math.max(1, Math.ceil(remainingMs(leased.lease, deps.worker.clock)))),
    });
  try {
    const records = batch.letters.map(({ record }) => record);
    const options = batchOptions('process', { topic, partition }, records);
    await inSpan(tracer, `process ${topic}`, options, storeAll);
    return true;
  } catch (error) {
    if (error instanceof LeaseLost) return false;
    throw error;
  }
}

/** Records that may be known already are looked up first: those read before, and those that carry our headers. */
async function storePart(deps: StoreDeps & Sealing, leased: LeasedPartition, part: Batch): Promise<boolean> {
  const batch = { ...part, letters: await matchWatched(deps.db, part.letters, deps.hashes) };
  const isFirst = batch.from >= leased.highOffset;
  const isNew = isFirst && batch.letters.every(({ lineage }) => lineage === null);
  await deps.storeFingerprints(deps.db, batch.letters);
  const ids = isNew
    ? await insertBatch(deps, leased, batch)
    : await deps.db.transaction((tx) => mergeBatch(tx, deps, leased, batch));
  if (ids !== null && ids.length > 0) deps.onInserted(leased.topic, ids);
  if (ids !== null && isFirst) deps.onRead(leased.topic, batch.letters);
  return ids !== null;
}
