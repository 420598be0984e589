/** Numbers that look random and are the same for the same seed. */
export type Chance = Readonly<{
  /** Evenly from 0 to 1. */
  next(): number;
  /** Whole, both ends included. */
  between(least: number, most: number): number;
  is(probability: number): boolean;
  pick<T>(from: readonly T[]): T;
  /** Another sequence: what one part draws does not change what another one draws. */
  fork(): Chance;
}>;

export function createChance(seed: number): Chance {
  let state = seed >>> 0;
  // mulberry32
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  return {
    next,
    between,
    is: (probability) => next() < probability,
    pick: (from) => {
      const one = from[between(0, from.length - 1)];
      if (one === undefined) throw new Error('there is nothing to pick from');
      return one;
    },
    fork: () => createChance(between(0, 2 ** 32 - 1)),
  };
}
