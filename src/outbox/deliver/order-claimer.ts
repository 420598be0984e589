import type { Clock } from '../../kernel/clock.ts';
import { createClaimCursor, type ClaimCursor } from '../../platform/work/claim-cursor.ts';
import type { ClaimedOrder, ClaimKind, ClaimOptions, ClaimPosition, ClaimResult } from './claim-orders.ts';

/** Claims due orders of one destination, in turn from those with and those without an ordering key. */
export type OrderClaimer = Readonly<{
  /**
   * Passes claimed orders to `onClaimed` after each of its statements, so that an error in the second one does not
   * lose the orders of the first. Returns whether there may be more due orders.
   */
  claim(room: Room, onClaimed: (orders: readonly ClaimedOrder[]) => void): Promise<boolean>;
  /** Claims an order that may take the process down; looks for one once a second. */
  claimSolo(): Promise<ClaimedOrder | null>;
  /** An order with an ordering key may have become due, though a moment ago there was none. */
  lookAgain(): void;
}>;

/** How many orders can be claimed, and how many bytes of requests. */
export type Room = Readonly<{ limit: number; bytes: number }>;

export type OrderClaimerDeps = Readonly<{
  clock: Clock;
  claim: (options: Omit<ClaimOptions, 'destination' | 'retryMax'>) => Promise<ClaimResult>;
  block: (orderingKeys: readonly string[]) => Promise<void>;
}>;

type Source = {
  readonly kind: Exclude<ClaimKind, 'solo'>;
  readonly cursor: ClaimCursor<ClaimPosition>;
  /** A claim found nothing a moment ago: not claimed again before this time while the other source has orders. */
  isEmptyUntilMs: number;
};

/** Wakes come in bursts; the next one within this time finds nothing new. */
const emptyForMs = 50;
/** Looking for orders that must run alone costs a statement; they are rare. */
const claimSoloEveryMs = 1000;

export function createOrderClaimer({ clock, claim, block }: OrderClaimerDeps): OrderClaimer {
  const newSource = (kind: Source['kind'], isAdaptive: boolean): Source => ({
    kind,
    cursor: createClaimCursor(clock, { isAdaptive }),
    isEmptyUntilMs: 0,
  });
  const unordered = newSource('unordered', true);
  // The next order of a key usually stands before the cursor, so it is reset every second however long that takes.
  const ordered = newSource('ordered', false);
  let sources = [unordered, ordered];
  let claimSoloAtMs = 0;

  const claimFrom = async (source: Source, room: Room): Promise<ClaimResult> => {
    let isFromStart = false;
    let claims = 0;
    const claimed = await source.cursor.claim(async (after) => {
      isFromStart = after === null;
      claims += 1;
      const result = await claim({ kind: source.kind, ...room, after });
      return { ...result, count: result.orders.length };
    });
    const isEmpty = claimed.last === null && isFromStart;
    source.isEmptyUntilMs = isEmpty ? clock.monotonicMs() + emptyForMs : 0;
    // Nothing after the cursor and nothing before it: what is due is locked. Claiming again at once would spin.
    const isFruitless = claims === 2 && claimed.orders.length === 0;
    return isFruitless ? { ...claimed, isFull: false } : claimed;
  };

  const isSkipped = (source: Source): boolean =>
    source.isEmptyUntilMs > clock.monotonicMs() &&
    sources.some((other) => other !== source && other.isEmptyUntilMs === 0);

  return {
    async claim({ limit, bytes }, onClaimed) {
      const inTurn = sources;
      sources = sources.toReversed();
      let rest = limit;
      let restBytes = bytes;
      let isMore = false;
      const crowdedKeys: string[] = [];
      for (const source of inTurn) {
        if (rest <= 0 || restBytes <= 0 || isSkipped(source)) continue;
        const claimed = await claimFrom(source, { limit: rest, bytes: restBytes });
        onClaimed(claimed.orders);
        rest -= claimed.orders.length;
        restBytes -= bytesOf(claimed.orders);
        isMore ||= claimed.isFull;
        crowdedKeys.push(...claimed.crowdedKeys);
      }
      if (crowdedKeys.length > 0) await block(crowdedKeys);
      return isMore;
    },

    async claimSolo() {
      if (clock.monotonicMs() < claimSoloAtMs) return null;
      const { orders } = await claim({ kind: 'solo', limit: 1, bytes: 1, after: null });
      // Where there is one, there may be more: the orders that were being sent when the process died.
      if (orders.length === 0) claimSoloAtMs = clock.monotonicMs() + claimSoloEveryMs;
      return orders[0] ?? null;
    },

    lookAgain: () => void (ordered.isEmptyUntilMs = 0),
  };
}

/** The size of their requests. */
export function bytesOf(orders: readonly Pick<ClaimedOrder, 'request'>[]): number {
  return orders.reduce((sum, { request }) => sum + request.length, 0);
}
