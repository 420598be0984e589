import { sleep } from '../../kernel/clock.ts';
import { minuteMs } from '../../kernel/duration.ts';
import type { Service } from '../../kernel/service.ts';
import { createNamedLease } from './named-lease.ts';
import type { Worker } from './work.ts';

/**
 * Retention: deletes or archives expired rows. One replica, the holder of a named lease, runs rounds of tasks by a
 * schedule. A task handles one table, in batches: each batch is a short transaction with a LIMIT, judges age by the
 * database's clock and skips locked rows. A task that fails is logged and retried a minute later, and does not keep
 * the other tasks from running.
 */
export type RetentionTask = Readonly<{
  /** What it handles, for the logs: `expired jobs`. */
  name: string;
  /** Runs until nothing is left or the signal aborts; returns how many rows it changed, by what it did to them. */
  run: (signal: AbortSignal) => Promise<Counts>;
}>;

export type Counts = Readonly<Record<string, number>>;

/** `next` is where the following batch starts; null at the end. */
export type Batch<Cursor> = Readonly<{ counts: Counts; next: Cursor | null }>;

/** A task that reads its table once from the start, so that rows which stay do not block those behind them. */
export function batchTask<Cursor>(
  name: string,
  runBatch: (after: Cursor | null) => Promise<Batch<Cursor>>,
): RetentionTask {
  return {
    name,
    async run(signal) {
      let counts: Counts = {};
      let after: Cursor | null = null;
      while (!signal.aborted) {
        const batch: Batch<Cursor> = await runBatch(after);
        counts = addCounts(counts, batch.counts);
        if (batch.next === null) break;
        after = batch.next;
      }
      return counts;
    },
  };
}

/** Rows that are left after this many batches are deleted in the next round. */
const maxBatches = 10_000;

/** A task that deletes the oldest rows until a batch is not full. `deleteBatch` returns how many rows it deleted. */
export function deleteTask(
  { name, count, batchSize }: Readonly<{ name: string; count: string; batchSize: number }>,
  deleteBatch: (limit: number) => Promise<number>,
): RetentionTask {
  return batchTask<number>(name, async (before) => {
    const deleted = await deleteBatch(batchSize);
    const batches = (before ?? 0) + 1;
    const isDone = deleted < batchSize || batches >= maxBatches;
    return { counts: { [count]: deleted }, next: isDone ? null : batches };
  });
}

/** Runs the tasks once, one after the other. A task that fails goes to `onError`; without it, the error is thrown. */
export async function runTasks(
  tasks: readonly RetentionTask[],
  signal: AbortSignal,
  onError?: (task: RetentionTask, error: unknown) => void,
): Promise<Counts> {
  let counts: Counts = {};
  for (const task of tasks) {
    if (signal.aborted) break;
    try {
      counts = addCounts(counts, await task.run(signal));
    } catch (error) {
      if (onError === undefined) throw error;
      onError(task, error);
    }
  }
  return counts;
}

function addCounts(some: Counts, more: Counts): Counts {
  const sums = Object.entries(more).map(([name, count]) => [name, (some[name] ?? 0) + count] as const);
  return { ...some, ...Object.fromEntries(sums) };
}

/** Thrown by a task that found its table locked: it is retried like any other failure, but not logged as one. */
export class TableBusyError extends Error {
  override readonly name = 'TableBusyError';
}

/** How long to wait for the next round, this long after the last one; undefined before the first. */
export type Schedule = (sinceLastMs: number | undefined) => number;

export type RetentionRound = Readonly<{
  schedule: Schedule;
  tasks: readonly RetentionTask[];
  /** The log message of a round that changed something: `deleted expired jobs`. */
  done: string;
  onDone?: (counts: Counts) => void;
  /** Pauses this many times as long as a round took, so that a slow one does not load the database all the time. */
  pausePerRound?: number;
}>;

export type RetentionOptions = Readonly<{
  /** Of the lease: `jobs.retention`. */
  name: string;
  rounds: readonly RetentionRound[];
  log: RetentionLog;
}>;

type LogLine = (facts: object, message: string) => void;
export type RetentionLog = Readonly<Record<'info' | 'warn' | 'debug', LogLine>>;

/** A timer cannot wait for months, and the machine may sleep meanwhile: a schedule is asked again after this long. */
const longestSleepMs = minuteMs;

/** The first round begins with the lease. */
export function every(ms: number): Schedule {
  return (sinceLastMs) => (sinceLastMs === undefined ? 0 : ms - sinceLastMs);
}

/** Rounds with different schedules run side by side, so that a slow one does not delay the others. */
export function createRetention(worker: Worker, { name, rounds, log }: RetentionOptions): Service {
  return createNamedLease(worker, {
    name,
    async work(signal, beat) {
      const failing = new Set<RetentionRound>();
      const note = (round: RetentionRound, hasFailed: boolean): void => {
        if (hasFailed) failing.add(round);
        else failing.delete(round);
        if (failing.size === 0) beat();
      };
      await Promise.all(
        rounds.map((round) =>
          repeatRound(worker, round, { log, signal, note: (hasFailed) => note(round, hasFailed) }),
        ),
      );
    },
    onError: (error) => log.warn({ err: error, lease: name }, 'retention failed'),
  });
}

type RoundDeps = Readonly<{
  log: RetentionLog;
  signal: AbortSignal;
  /** Called after every round, and every minute between two rounds. */
  note: (hasFailed: boolean) => void;
}>;

async function repeatRound(
  worker: Worker,
  round: RetentionRound,
  { log, signal, note }: RoundDeps,
): Promise<void> {
  const { clock } = worker;
  await waitFor(
    () => round.schedule(undefined),
    signal,
    () => note(false),
  );
  while (!signal.aborted) {
    let hasFailed = false;
    const startMs = clock.monotonicMs();
    const counts = await runTasks(round.tasks, signal, (task, error) => {
      hasFailed = true;
      if (error instanceof TableBusyError) log.debug({ task: task.name }, 'table is locked; retrying later');
      else log.warn({ err: error, task: task.name }, 'retention task failed; retrying in a minute');
    });
    round.onDone?.(counts);
    if (Object.values(counts).some((count) => count > 0)) log.info(counts, round.done);
    const endMs = clock.monotonicMs();
    const sinceMs = (): number => clock.monotonicMs() - endMs;
    const noteEnd = (): void => note(hasFailed);
    await waitFor(() => (endMs - startMs) * (round.pausePerRound ?? 0) - sinceMs(), signal, noteEnd);
    await waitFor(
      () => {
        const scheduledMs = round.schedule(sinceMs());
        return hasFailed ? Math.min(scheduledMs, minuteMs - sinceMs()) : scheduledMs;
      },
      signal,
      noteEnd,
    );
  }
}

async function waitFor(remainingMs: () => number, signal: AbortSignal, onWait: () => void): Promise<void> {
  while (!signal.aborted) {
    onWait();
    const waitMs = Math.max(0, remainingMs());
    await sleep(Math.min(waitMs, longestSleepMs), signal);
    if (waitMs <= longestSleepMs) return;
  }
}
