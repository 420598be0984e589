const maxNoted = 10_000;

/** The latest time by id; forgets all of them when there are too many. */
export function createNotedTimes() {
  let times = new Map<string, number>();
  return {
    isNewer: (id: string, time: number, byMs: number): boolean => {
      const known = times.get(id);
      return known === undefined || time > known + byMs;
    },
    set(id: string, time: number): void {
      if (times.size >= maxNoted) times = new Map();
      times.set(id, time);
    },
  };
}
