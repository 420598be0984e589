import type { Clock } from '../../kernel/clock.ts';

const lookBackEveryMs = 1000;

/**
 * Where the next claim begins. Each claim leaves the index entries of what it has taken behind, and while a
 * transaction runs long elsewhere nobody can remove them: the next claim would step over all of them. So, while there
 * is more than enough, it begins where the last one ended. What became due before that, later, is found by looking
 * back: once a second, and as soon as a claim is not full.
 */
export type ClaimMark = Readonly<{
  /** Null: from the beginning. */
  from(): Date | null;
  /** When the last of a full claim was due; undefined after one that was not full. */
  note(last: Date | undefined): void;
}>;

export function createClaimMark(clock: Clock): ClaimMark {
  let last: Date | undefined;
  let lookBackAtMs = 0;
  return {
    from() {
      const now = clock.monotonicMs();
      if (last !== undefined && now < lookBackAtMs) return last;
      lookBackAtMs = now + lookBackEveryMs;
      return null;
    },
    note: (one) => void (last = one),
  };
}
