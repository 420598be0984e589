import type { Clock } from '../../kernel/clock.ts';

/**
 * Where the next claim starts to look for due rows. Every claim leaves dead index entries behind, and while a
 * long-running transaction elsewhere keeps vacuum from removing them, a claim from the start of the index would step
 * over all of them. So while claims are full, the next one starts where the last one stopped.
 *
 * Rows that become visible before the cursor (late commits, higher priorities) are found by claims from the start: once
 * a second, after a claim that was not full, and at once when nothing was found after the cursor. An adaptive cursor
 * makes them less often when they are slow. Of claims that run in parallel, one starts from the start.
 */
export type ClaimCursor<Position> = Readonly<{
  /** Calls `claimAfter` with the cursor, and again with null if that found nothing. Null: from the start. */
  claim<Result extends CursorResult<Position>>(
    claimAfter: (after: Position | null) => Promise<Result>,
  ): Promise<Result>;
  /** Some of the rows of the last claim were given back: the next claim starts after `position` at the latest. */
  rewind(position: Position): void;
  /** The next claim starts from the start. */
  reset(): void;
}>;

export type CursorResult<Position> = Readonly<{
  /** The last row that was claimed or looked at; null if there was none. */
  last: Position | null;
  count: number;
  /** There may be more rows after `last`. */
  isFull: boolean;
}>;

/** How late rows behind the cursor are found: released ones, and those that became due. */
const resetEveryMs = 1000;
/** After a claim from the start that took t, an adaptive cursor waits at least this many times t. */
const restFactor = 20;
/** A claim from the start that takes longer is slow because of dead index entries, not because of the rows it claims. */
const slowMs = 20;
/** A claim over dead rows takes longer than this for each row that it finds. */
const slowMsPerRow = 0.2;

export function createClaimCursor<Position>(
  clock: Clock,
  { isAdaptive }: Readonly<{ isAdaptive: boolean }>,
): ClaimCursor<Position> {
  let cursor: Position | null = null;
  let resetAtMs = 0;
  let isSlowFromStart = false;

  const claimFromStart = async <Result extends CursorResult<Position>>(
    claimAfter: (after: null) => Promise<Result>,
  ): Promise<Result> => {
    const begin = clock.monotonicMs();
    // Set before the claim: those that run in parallel go on from the cursor.
    resetAtMs = begin + resetEveryMs;
    const result = await claimAfter(null);
    if (!isAdaptive) return result;
    const end = clock.monotonicMs();
    isSlowFromStart = end - begin > slowMs + slowMsPerRow * result.count;
    resetAtMs = end + Math.max(resetEveryMs, restFactor * (end - begin));
    return result;
  };

  const moveTo = ({ last, isFull }: CursorResult<Position>): void => {
    cursor = isFull || isSlowFromStart ? (last ?? cursor) : null;
  };

  return {
    async claim(claimAfter) {
      const after = clock.monotonicMs() >= resetAtMs ? null : cursor;
      if (after !== null) {
        const result = await claimAfter(after);
        moveTo(result);
        if (result.last !== null || isSlowFromStart) return result;
      }
      const result = await claimFromStart(claimAfter);
      moveTo(result);
      return result;
    },
    rewind: (position) => void (cursor &&= position),
    reset: () => void (cursor = null),
  };
}
