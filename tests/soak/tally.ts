/** Counts what has struck, by name. */
export type Tally = Readonly<{
  count(name: string, times?: number): void;
  lines(): readonly string[];
}>;

export function createTally(): Tally {
  const counts = new Map<string, number>();
  return {
    count: (name, times = 1) => void counts.set(name, (counts.get(name) ?? 0) + times),
    lines: () =>
      [...counts]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, count]) => `${String(count).padStart(8)}  ${name}`),
  };
}
