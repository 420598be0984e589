import type { Keyset } from '../stored-message.ts';
import type { Excluded } from './bulk-queries.ts';
import type { ClaimedMessage } from './claim-messages.ts';

/**
 * Keeps messages with the same key and target in order within one bulk call. A refused message blocks its key for the
 * rest of the call. A message that is tried again blocks the later messages of its key until then. Messages without a
 * key have no order.
 */
export type KeyOrder = Readonly<{
  /** Null if the message may be sent now. */
  blockedBy(message: Ordered): 'refused' | 'waiting' | null;
  refuse(message: Ordered): void;
  wait(message: Ordered): void;
  /** The message was claimed again. */
  resume(message: Ordered): void;
  refused(): Excluded['keys'];
  /** Every claim excludes all refused keys, so their number is limited. */
  isFull(): boolean;
}>;

type Ordered = Pick<ClaimedMessage, 'targetTopic' | 'orderKey' | 'place'>;

export const maxRefusedKeys = 10_000;

export function createKeyOrder(limit = maxRefusedKeys): KeyOrder {
  const refused = new Map<string, Excluded['keys'][number]>();
  const waiting = new Map<string, Set<string>>();

  return {
    blockedBy(message) {
      if (refused.size === 0 && waiting.size === 0) return null;
      const key = keyOf(message);
      if (key === null) return null;
      if (refused.has(key)) return 'refused';
      const place = placeOf(message.place);
      const isBehind = [...(waiting.get(key) ?? [])].some((earlier) => earlier < place);
      return isBehind ? 'waiting' : null;
    },
    refuse(message) {
      const key = keyOf(message);
      if (key !== null && message.orderKey !== null)
        refused.set(key, { topic: message.targetTopic, orderKey: message.orderKey });
    },
    wait(message) {
      const key = keyOf(message);
      if (key === null) return;
      const places = waiting.get(key) ?? new Set();
      waiting.set(key, places.add(placeOf(message.place)));
    },
    resume(message) {
      const key = keyOf(message);
      if (key === null) return;
      const places = waiting.get(key);
      places?.delete(placeOf(message.place));
      if (places?.size === 0) waiting.delete(key);
    },
    refused: () => [...refused.values()],
    isFull: () => refused.size >= limit,
  };
}

function keyOf({ targetTopic, orderKey }: Ordered): string | null {
  return orderKey && `${targetTopic}\n${orderKey.toString('latin1')}`;
}

/** Sorts in claim order: both parts have a fixed width. */
export function placeOf({ createdAt, id }: Keyset): string {
  return `${createdAt} ${id}`;
}
