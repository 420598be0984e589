import type { Clock } from '../../kernel/clock.ts';
import { remainingMs, type Lease } from '../../kernel/lease.ts';
import type { HeldSaga } from './ports.ts';

type Which = Pick<HeldSaga, 'id' | 'lease'>;

/**
 * The sagas that this process has, each with its lease as it was prolonged last, and how large they are together. A
 * saga may have been let go and claimed anew: that is another one. One whose lease was lost counts until its call has
 * ended, for so long it takes its room.
 */
export type HeldSagas = Readonly<{
  size: () => number;
  bytes: () => number;
  /** Without those that are lost. */
  all: () => readonly HeldSaga[];
  has: (saga: Which) => boolean;
  /** By the monotonic clock. */
  isAlive: (saga: Which) => boolean;
  add: (saga: HeldSaga) => void;
  /** It has become as large as it says. */
  grow: (saga: HeldSaga) => void;
  renew: (saga: Which, endsAtMs: number) => void;
  /** Somebody else may have it. */
  lose: (saga: Which) => void;
  remove: (saga: Which) => void;
}>;

const keyOf = ({ id, lease }: Which): string => `${id} ${lease.epoch}`;

export function createHeldSagas(clock: Clock): HeldSagas {
  const held = new Map<string, { saga: HeldSaga; lease: Lease; bytes: number; isLost: boolean }>();
  let bytes = 0;
  return {
    size: () => held.size,
    bytes: () => bytes,
    all: () => [...held.values()].filter(({ isLost }) => !isLost).map(({ saga }) => saga),
    has: (saga) => held.has(keyOf(saga)),
    isAlive(saga) {
      const mine = held.get(keyOf(saga));
      return mine !== undefined && !mine.isLost && remainingMs(mine.lease, clock) > 0;
    },
    add(saga) {
      bytes += saga.bytes;
      held.set(keyOf(saga), { saga, lease: saga.lease, bytes: saga.bytes, isLost: false });
    },
    grow(saga) {
      const mine = held.get(keyOf(saga));
      if (mine === undefined) return;
      bytes += saga.bytes - mine.bytes;
      mine.bytes = saga.bytes;
    },
    renew(saga, endsAtMs) {
      const mine = held.get(keyOf(saga));
      if (mine !== undefined) mine.lease = { ...mine.lease, endsAtMs };
    },
    lose(saga) {
      const mine = held.get(keyOf(saga));
      if (mine !== undefined) mine.isLost = true;
    },
    remove(saga) {
      bytes -= held.get(keyOf(saga))?.bytes ?? 0;
      held.delete(keyOf(saga));
    },
  };
}
