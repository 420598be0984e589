import { backoffMs } from '../../kernel/backoff.ts';
import { trace } from '@opentelemetry/api';
import { sleep } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { remainingMs } from '../../kernel/lease.ts';
import type { Broker, FetchFailure, FetchResult } from '../../platform/broker/port.ts';
import { batchOptions } from '../../platform/telemetry/message-spans.ts';
import type { ActivePartition, LeasedPartitions } from './leased-partitions.ts';
import {
  clearPartitionError,
  notePartitionError,
  reloadPartition,
  skipLostRecords,
  type LeasedPartition,
} from './partitions-table.ts';
import type { Fetched } from './split-fetched.ts';
import { storeFetched, type StoreDeps } from './store-fetched.ts';

export type ReadDeps = StoreDeps &
  Readonly<{
    broker: Broker;
    partitions: LeasedPartitions;
    /** Limits the bytes that are fetched and not stored yet, in all loops together. */
    maxBytesInFlight: number;
    onStored: (leased: LeasedPartition, records: number, bytes: number) => void;
    /** An error of one partition. */
    onTrouble: (leased: LeasedPartition, message: string) => void;
    /** The lease was lost while a batch was being stored; nothing of the batch was stored. */
    onStale: () => void;
    /** A leader moved or a topic was deleted: discover the partitions again soon. */
    onMoved: () => void;
  }>;

const tracer = trace.getTracer('redrive');

/** Bytes fetched and not stored yet, in all loops. */
export type InFlight = { bytes: number };

/** While records arrive: a fetch must not hold back what the next one could store. */
const busyWaitMs = 20;
/** The broker answers at once when a record arrives; this is how often an idle one is asked. */
const idleWaitMs = 500;
const bytesPerPartition = 1 << 20;
const bytesPerFetch = 8 << 20;
/** How long a position may be beyond the end of the log before reading stops. */
const beyondEndMs = 60_000;
const partitionBackoff = { initialMs: 200, maxMs: 30_000, jitter: 0.2 };

/**
 * Reads the leased partitions of one broker node until stopped, or until there are none: fetch -> decode -> store. The
 * batches of one fetch are stored in parallel with the next fetch, which leaves out the partitions that are still
 * being stored. While there are such, the fetch waits only briefly for records, so that a busy partition never waits
 * for idle ones.
 */
export async function readNode(
  deps: ReadDeps,
  node: number,
  inFlight: InFlight,
  stopping: AbortSignal,
): Promise<void> {
  const storing = new Set<Promise<void>>();
  for (let failures = 0; !stopping.aborted;) {
    const ours = deps.partitions.all().filter((one) => one.node === node && !one.isLeaving);
    if (ours.length === 0) break;
    const ready = ours.filter((one) => isReady(deps, one));
    const room = deps.maxBytesInFlight - inFlight.bytes;
    if (ready.length === 0 || (room < bytesPerPartition && storing.size > 0)) {
      await Promise.race([...storing, sleep(busyWaitMs, stopping)]);
      continue;
    }
    try {
      const maxWaitMs = ours.some((one) => one.isBusy) ? busyWaitMs : idleWaitMs;
      const polledAt = Date.now();
      const results = await fetchRecords(deps, ready, { maxWaitMs, room, stopping });
      results.forEach((result) => tracePoll(result, polledAt));
      failures = 0;
      results.forEach((result, i) => {
        const active = ready[i];
        if (active === undefined) return;
        active.isBusy = true;
        const task = handleResult(deps, active, result, inFlight).finally(() => storing.delete(task));
        storing.add(task);
      });
    } catch (error) {
      if (stopping.aborted) break;
      failures += 1;
      for (const active of ready) await reportError(deps, active, messageOf(error));
      await sleep(backoffMs(partitionBackoff, failures), stopping);
    }
  }
  await Promise.all(storing);
}

function isReady({ worker }: ReadDeps, { isBusy, pausedUntilMs, leased }: ActivePartition): boolean {
  const isPaused = pausedUntilMs > worker.clock.monotonicMs();
  return !isBusy && !isPaused && remainingMs(leased.lease, worker.clock) > 0;
}

async function fetchRecords(
  deps: ReadDeps,
  ready: readonly ActivePartition[],
  { maxWaitMs, room, stopping }: Readonly<{ maxWaitMs: number; room: number; stopping: AbortSignal }>,
): Promise<readonly FetchResult[]> {
  const positions = ready.map(({ leased: { topic, topicId, partition, nextOffset } }) => ({
    topic,
    topicId,
    partition,
    offset: nextOffset,
  }));
  const maxBytes = Math.max(bytesPerPartition, Math.min(bytesPerFetch, room));
  const limits = { maxWaitMs, maxBytes, maxBytesPerPartition: bytesPerPartition };
  return deps.broker.fetch(positions, limits, stopping);
}

/** Only of a fetch that found records: while there are none, a fetch ends every half second. */
function tracePoll(result: FetchResult, startTime: number): void {
  if ('error' in result || result.records.length === 0) return;
  const options = batchOptions('poll', result, result.records);
  tracer.startSpan(`poll ${result.topic}`, { ...options, startTime, root: true }).end();
}

async function handleResult(
  deps: ReadDeps,
  active: ActivePartition,
  result: FetchResult,
  inFlight: InFlight,
): Promise<void> {
  try {
    if ('error' in result) await handleFetchError(deps, active, result.error);
    else await storeResult(deps, active, result, inFlight);
  } catch (error) {
    pause(deps, active);
    await reportError(deps, active, messageOf(error));
    // The response to a COMMIT may be lost: the position is what the database says.
    await reload(deps, active).catch(() => {});
  } finally {
    active.isBusy = false;
    if (active.isLeaving) await deps.partitions.release(active).catch(() => {});
  }
}

async function storeResult(
  deps: ReadDeps,
  active: ActivePartition,
  fetched: Fetched,
  inFlight: InFlight,
): Promise<void> {
  active.beyondEndSinceMs = null;
  const { leased } = active;
  if (fetched.nextOffset <= leased.nextOffset) {
    active.failures = 0;
    // Without new records nothing is stored that would clear an old error.
    if (active.mayShowError) await clearPartitionError(deps.db, leased);
    active.mayShowError = false;
    return;
  }
  const bytes = sizeOf(fetched);
  inFlight.bytes += bytes;
  try {
    const moved = await storeFetched(deps, leased, fetched);
    if (moved === null) {
      // A lost response to our own commit, a seek, or another replica.
      if (!(await reload(deps, active))) deps.onStale();
      return;
    }
    // The lease may have been renewed meanwhile.
    active.leased = { ...moved, lease: active.leased.lease };
    active.failures = 0;
    active.mayShowError = false;
    deps.onStored(active.leased, fetched.records.length, bytes);
  } finally {
    inFlight.bytes -= bytes;
  }
}

function sizeOf(fetched: Fetched): number {
  const lengthOf = (bytes: Buffer | null): number => bytes?.length ?? 0;
  let bytes = 0;
  for (const { key, value, headers } of fetched.records) {
    bytes += 100 + lengthOf(key) + lengthOf(value);
    for (const header of headers) bytes += 50 + header.key.length + lengthOf(header.value);
  }
  return bytes;
}

async function handleFetchError(
  deps: ReadDeps,
  active: ActivePartition,
  error: FetchFailure['error'],
): Promise<void> {
  const { leased } = active;
  if (error.kind === 'out_of_range' && error.start !== undefined && leased.nextOffset < error.start) {
    const lost = `${leased.nextOffset} to ${error.start - 1n}`;
    deps.onTrouble(leased, `retention deleted offsets ${lost} before they were read`);
    if (!(await skipLostRecords(deps.db, leased, error.start))) deps.onStale();
    await reload(deps, active);
    return;
  }
  const message = `${error.code}: ${error.message}`;
  pause(deps, active);
  active.mayShowError = true;
  deps.onTrouble(leased, message);
  if (error.kind === 'moved' || error.kind === 'gone') deps.onMoved();
  if (error.kind === 'out_of_range') return waitBeyondEnd(deps, active);
  const kind = error.kind === 'denied' ? 'denied' : undefined;
  await notePartitionError(deps.db, leased, { error: message, kind });
}

/** The log is shorter than what we have read. It may grow back; moving the position would lose or repeat records. */
async function waitBeyondEnd(deps: ReadDeps, active: ActivePartition): Promise<void> {
  const nowMs = deps.worker.clock.monotonicMs();
  active.beyondEndSinceMs ??= nowMs;
  const isStopped = nowMs - active.beyondEndSinceMs >= beyondEndMs;
  const message = `the position ${active.leased.nextOffset} is beyond the end of the partition`;
  await notePartitionError(deps.db, active.leased, {
    error: isStopped ? `${message}; reading has stopped, seek to continue` : message,
    kind: isStopped ? 'stopped' : undefined,
  });
  if (isStopped) active.isLeaving = true;
}

/** Logs the error, and stores it in the partition's row if the database is available. */
async function reportError(deps: ReadDeps, active: ActivePartition, error: string): Promise<void> {
  active.mayShowError = true;
  deps.onTrouble(active.leased, error);
  await notePartitionError(deps.db, active.leased, { error }).catch(() => {});
}

function pause(deps: ReadDeps, active: ActivePartition): void {
  active.failures += 1;
  active.pausedUntilMs = deps.worker.clock.monotonicMs() + backoffMs(partitionBackoff, active.failures);
}

/** Takes the position from the database; false, and the partition is dropped, if the lease is lost. */
async function reload(deps: ReadDeps, active: ActivePartition): Promise<boolean> {
  const leased = await reloadPartition(deps.db, active.leased);
  if (leased === null) {
    deps.partitions.drop(active);
    return false;
  }
  active.leased = { ...leased, lease: active.leased.lease };
  return true;
}
