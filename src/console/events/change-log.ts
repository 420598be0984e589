/** What has changed in one slice. `many`: more than can be listed, or not only what is listed. */
export type SliceChange = Readonly<{
  /** By id, the name that decides who may see it. */
  rows: ReadonlyMap<string, string>;
  isComplete: boolean;
}>;

export type ChangeSet = Readonly<{ n: number; bySlice: ReadonlyMap<string, SliceChange> }>;

export type ChangeLog = Readonly<{
  /** The id of the newest change. */
  lastId(): string;
  add(bySlice: ReadonlyMap<string, SliceChange>): ChangeSet;
  /** Changes after the id; null if they are not known any more, so that everything has to be read again. */
  since(id: string): readonly ChangeSet[] | null;
  /** Nobody looked for a while: what was before does not lead to what comes. */
  interrupt(): void;
}>;

/** Keeps the latest changes for clients that come back after a moment. */
export function createChangeLog(process: string, kept = 120): ChangeLog {
  let n = 0;
  let sets: readonly ChangeSet[] = [];
  /** Clients that have seen this one have missed nothing that is not in `sets`. */
  let first = 0;
  return {
    lastId: () => `${process}-${n}`,
    add(bySlice) {
      n += 1;
      const set = { n, bySlice };
      sets = [...sets, set].slice(-kept);
      first = (sets[0]?.n ?? n) - 1;
      return set;
    },
    since(id) {
      if (!id.startsWith(`${process}-`)) return null;
      const text = id.slice(process.length + 1);
      if (!/^\d{1,15}$/.test(text)) return null;
      const seen = Number(text);
      return seen < first || seen > n ? null : sets.filter((set) => set.n > seen);
    },
    interrupt() {
      n += 1;
      first = n;
      sets = [];
    },
  };
}
