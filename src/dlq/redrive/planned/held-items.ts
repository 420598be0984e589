import type { Candidate, Held } from '../../domain/redrive-item.ts';

/**
 * Items that a round leaves out because another transaction has locked their message, with the rest of their key. They
 * are tried again once per pass; after too many passes they are given up.
 */
export type HeldItems = Readonly<{
  hold(candidates: readonly Candidate[]): void;
  /** What the rounds of this pass leave out, with the keys that are in flight in a lost process. */
  now(foreignKeys: ReadonlySet<string>): Held;
  /** The lowest position to start the next pass from; null if nothing is held. */
  startPass(): number | null;
}>;

const maxPasses = 10;

export function createHeldItems(): HeldItems {
  const passes = new Map<number, number>();
  let held = new Map<number, string | null>();
  return {
    hold(candidates) {
      for (const { position, orderKey } of candidates) {
        held.set(position, orderKey);
        passes.set(position, (passes.get(position) ?? 0) + 1);
      }
    },
    now(foreignKeys) {
      const isOver = (position: number): boolean => (passes.get(position) ?? 0) > maxPasses;
      const kept = [...held].filter(([position]) => !isOver(position));
      return {
        positions: new Set(kept.map(([position]) => position)),
        keys: new Set([...foreignKeys, ...kept.map(([, key]) => key).filter((key) => key !== null)]),
        givenUp: new Set([...held.keys()].filter(isOver)),
      };
    },
    startPass() {
      if (held.size === 0) return null;
      const lowest = Math.min(...held.keys());
      held = new Map([...held].filter(([position]) => (passes.get(position) ?? 0) > maxPasses));
      return lowest;
    },
  };
}
