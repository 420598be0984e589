/**
 * A task handles one table, in batches: each batch is a short transaction with a LIMIT, judges age by the database's
 * clock and skips locked rows. The guard of sagas runs tasks in the user's own process, so nothing else is imported.
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
