import { sleep } from '../../kernel/clock.ts';
import { minuteMs } from '../../kernel/duration.ts';
import type { Service } from '../../kernel/service.ts';
import { createNamedLease } from './named-lease.ts';
import { runTasks, type Counts, type RetentionTask } from './retention-tasks.ts';
import type { Worker } from './work.ts';

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

/**
 * Retention: deletes or archives expired rows. One replica, the holder of a named lease, runs rounds of tasks by a
 * schedule. A task that fails is logged and retried a minute later, and does not keep the other tasks from running.
 */
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
