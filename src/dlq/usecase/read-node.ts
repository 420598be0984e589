import { backoffMs } from '../../kernel/backoff.ts';
import { sleep, type Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { remainingMs } from '../../kernel/lease.ts';
import type { ActivePartition, HeldPartitions } from './held-partitions.ts';
import { ingestBatch, type Fetched, type IngestDeps } from './ingest-batch.ts';
import type { FetchResult, HeldPartition, PartitionStore, Source } from './ports.ts';

export type ReadDeps = IngestDeps &
  Readonly<{
    source: Source;
    partitions: PartitionStore;
    held: HeldPartitions;
    clock: Clock;
    /** What was fetched and is not stored yet, in all loops together, stays below this. */
    maxBytesInFlight: number;
    onStored: (held: HeldPartition, records: number, bytes: number) => void;
    /** Trouble of one partition. */
    onTrouble: (held: HeldPartition, message: string) => void;
    /** The lease was lost while a batch was under way; nothing of it was stored. */
    onStale: () => void;
    /** Leaders moved or topics went: list the partitions again soon. */
    onMoved: () => void;
  }>;

/** Bytes fetched and not stored yet, over all loops. */
export type InFlight = { bytes: number };

const busyWaitMs = 20;
const idleWaitMs = 500;
const bytesPerPartition = 1 << 20;
const bytesPerFetch = 8 << 20;
const beyondEndMs = 60_000;
const partitionBackoff = { initialMs: 200, maxMs: 30_000, jitter: 0.2 };

/**
 * Reads all held partitions of one broker node until told to stop or until there are none. A partition whose
 * batch is being stored is left out of the next request; while one is left out the broker is asked not to
 * wait long, so that a busy partition never waits for idle ones.
 */
export async function readNode(
  deps: ReadDeps,
  node: number,
  inFlight: InFlight,
  stopping: AbortSignal,
): Promise<void> {
  const storing = new Set<Promise<void>>();
  for (let failures = 0; !stopping.aborted;) {
    const ours = deps.held.all().filter((one) => one.node === node && !one.isLeaving);
    if (ours.length === 0) break;
    const nowMs = deps.clock.monotonicMs();
    const free = ours.filter(
      (one) => !one.isBusy && one.pausedUntilMs <= nowMs && remainingMs(one.held.lease, deps.clock) > 0,
    );
    const room = deps.maxBytesInFlight - inFlight.bytes;
    if (free.length === 0 || (room < bytesPerPartition && storing.size > 0)) {
      await Promise.race([...storing, sleep(busyWaitMs, stopping)]);
      continue;
    }
    try {
      const results = await deps.source.fetch(
        free.map(({ held }) => ({ ...refOf(held), offset: held.nextOffset })),
        {
          maxWaitMs: ours.some((one) => one.isBusy) ? busyWaitMs : idleWaitMs,
          maxBytes: Math.max(bytesPerPartition, Math.min(bytesPerFetch, room)),
          maxBytesPerPartition: bytesPerPartition,
        },
        stopping,
      );
      failures = 0;
      results.forEach((result, i) => {
        const active = free[i];
        if (active === undefined) return;
        active.isBusy = true;
        const task = handle(deps, active, result, inFlight).finally(() => storing.delete(task));
        storing.add(task);
      });
    } catch (error) {
      if (stopping.aborted) break;
      failures += 1;
      for (const active of free) await noteTrouble(deps, active, messageOf(error));
      await sleep(backoffMs(partitionBackoff, failures), stopping);
    }
  }
  await Promise.all(storing);
}

function refOf({ topic, topicId, partition }: HeldPartition) {
  return { topic, topicId, partition };
}

async function handle(
  deps: ReadDeps,
  active: ActivePartition,
  result: FetchResult,
  inFlight: InFlight,
): Promise<void> {
  try {
    if ('error' in result) await handleError(deps, active, result.error);
    else await store(deps, active, result, inFlight);
  } catch (error) {
    pause(deps, active);
    await noteTrouble(deps, active, messageOf(error));
    // The answer to a COMMIT may be what was lost: where we stand is what the database says.
    await reload(deps, active).catch(() => {});
  } finally {
    active.isBusy = false;
    if (active.isLeaving) await deps.held.giveBack(active).catch(() => {});
  }
}

async function store(
  deps: ReadDeps,
  active: ActivePartition,
  fetched: Fetched,
  inFlight: InFlight,
): Promise<void> {
  active.beyondEndSinceMs = null;
  const before = active.held;
  if (fetched.nextOffset <= before.nextOffset) {
    active.failures = 0;
    // A partition without news stores nothing, and must not show for ever what went wrong once.
    if (active.mayShowError) await deps.partitions.clearError(before);
    active.mayShowError = false;
    return;
  }
  const bytes = sizeOf(fetched);
  inFlight.bytes += bytes;
  try {
    const after = await ingestBatch(deps, before, fetched);
    if (after === null) {
      // Not matched: an answer of our own that was lost, a seek, or another replica.
      if (!(await reload(deps, active))) deps.onStale();
      return;
    }
    active.held = { ...after, lease: active.held.lease };
    active.failures = 0;
    active.mayShowError = false;
    deps.onStored(active.held, fetched.records.length, bytes);
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

type FetchError = Extract<FetchResult, { error: unknown }>['error'];

async function handleError(deps: ReadDeps, active: ActivePartition, error: FetchError): Promise<void> {
  const { held } = active;
  const message = `${error.code}: ${error.message}`;
  if (error.kind === 'out_of_range' && error.start !== undefined && held.nextOffset < error.start) {
    deps.onTrouble(
      held,
      `retention has removed offsets ${held.nextOffset} to ${error.start - 1n} before they were read`,
    );
    if (!(await deps.ingest.skipLost(held, error.start))) deps.onStale();
    await reload(deps, active);
    return;
  }
  pause(deps, active);
  active.mayShowError = true;
  deps.onTrouble(held, message);
  if (error.kind === 'moved' || error.kind === 'gone') deps.onMoved();
  if (error.kind === 'out_of_range') return waitBeyondEnd(deps, active);
  await deps.partitions.noteError(held, message, false);
}

/** The log is shorter than what we have read. It may grow back; jumping would lose or repeat records. */
async function waitBeyondEnd(deps: ReadDeps, active: ActivePartition): Promise<void> {
  const nowMs = deps.clock.monotonicMs();
  active.beyondEndSinceMs ??= nowMs;
  const isOver = nowMs - active.beyondEndSinceMs >= beyondEndMs;
  const message = `the position ${active.held.nextOffset} lies beyond the end of the partition`;
  await deps.partitions.noteError(
    active.held,
    isOver ? `${message}; reading has stopped, seek to go on` : message,
    isOver,
  );
  if (isOver) active.isLeaving = true;
}

/** Says it in the log and, as far as the database can be reached, in the partition's row. */
async function noteTrouble(deps: ReadDeps, active: ActivePartition, message: string): Promise<void> {
  active.mayShowError = true;
  deps.onTrouble(active.held, message);
  await deps.partitions.noteError(active.held, message, false).catch(() => {});
}

function pause(deps: ReadDeps, active: ActivePartition): void {
  active.failures += 1;
  active.pausedUntilMs = deps.clock.monotonicMs() + backoffMs(partitionBackoff, active.failures);
}

/** Position as the database has it; false, and the partition forgotten, when the lease is no longer ours. */
async function reload(deps: ReadDeps, active: ActivePartition): Promise<boolean> {
  const held = await deps.partitions.reload(active.held);
  if (held === null) {
    deps.held.drop(active);
    return false;
  }
  active.held = { ...held, lease: active.held.lease };
  return true;
}
