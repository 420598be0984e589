import type { CheckedKey } from './keys-table.ts';

/** Revocations are announced by NOTIFY; a lost announcement takes effect after this time. */
const keptMs = 1000;
const maxKept = 10_000;

export type KeyCache = Readonly<{
  find(id: string): Promise<CheckedKey | null>;
  /** Forgets all keys. What is being read at this moment is not kept. */
  clear(): void;
}>;

/** Asks the database for each key at most once a second, also for one that does not exist. */
export function createKeyCache(find: (id: string) => Promise<CheckedKey | null>): KeyCache {
  let kept = new Map<string, Readonly<{ key: Promise<CheckedKey | null>; untilMs: number }>>();
  return {
    find(id) {
      const known = kept.get(id);
      if (known !== undefined && performance.now() < known.untilMs) return known.key;
      if (kept.size >= maxKept) kept = new Map();
      const key = find(id);
      kept.set(id, { key, untilMs: performance.now() + keptMs });
      key.catch(() => kept.delete(id));
      return key;
    },
    clear() {
      kept = new Map();
    },
  };
}
