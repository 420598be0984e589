/** What has ended is announced by NOTIFY; a lost announcement takes effect after this time. */
const keptMs = 1000;
const maxKept = 10_000;

export type ShortCache<T> = Readonly<{
  find(id: string): Promise<T | null>;
  /** Forgets everything. What is being read at this moment is not kept. */
  clear(): void;
}>;

/** Asks the database for each id at most once a second, also for one that does not exist. */
export function createShortCache<T>(find: (id: string) => Promise<T | null>): ShortCache<T> {
  let kept = new Map<string, Readonly<{ found: Promise<T | null>; untilMs: number }>>();
  return {
    find(id) {
      const known = kept.get(id);
      if (known !== undefined && performance.now() < known.untilMs) return known.found;
      if (kept.size >= maxKept) kept = new Map();
      const found = find(id);
      kept.set(id, { found, untilMs: performance.now() + keptMs });
      found.catch(() => kept.delete(id));
      return found;
    },
    clear() {
      kept = new Map();
    },
  };
}
