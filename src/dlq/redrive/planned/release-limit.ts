/**
 * Bounds how often a redrive tries messages that are released although their target accepts messages: their bytes could
 * not be read, or too little time was left on the lease. Such a batch is tried again at once with half of its messages,
 * so that one message that is the cause ends up alone. Released alone too often, it is given up.
 */
export type ReleaseLimit = Readonly<{
  /** The largest batch to claim now. */
  batchSize(): number;
  /** Notes a batch and which of its messages were released so; returns those to give up. */
  note(batch: readonly string[], released: ReadonlySet<string>): ReadonlySet<string>;
}>;

const maxBatch = 1000;
const maxReleases = 3;

export function createReleaseLimit(): ReleaseLimit {
  const times = new Map<string, number>();
  let size = maxBatch;
  return {
    batchSize: () => size,
    note(batch, released) {
      const [first] = batch;
      if (released.size === 0) {
        size = Math.min(maxBatch, size * 2);
        return released;
      }
      size = Math.max(1, Math.floor(Math.min(size, batch.length) / 2));
      if (batch.length > 1 || first === undefined) return new Set();
      times.set(first, (times.get(first) ?? 0) + 1);
      if ((times.get(first) ?? 0) < maxReleases) return new Set();
      times.delete(first);
      return released;
    },
  };
}
