import type { Clock } from '../../kernel/clock.ts';
import { remainingMs, type Lease } from '../../kernel/lease.ts';
import type { HeldSaga } from './ports.ts';

type Which = Pick<HeldSaga, 'id' | 'lease'>;

/**
 * The sagas that this process has, each with its lease as it was prolonged last, and how large they are together. A
 * saga may have been let go and claimed anew: that is another one.
 */
export type HeldSagas = Readonly<{
  size: () => number;
  bytes: () => number;
  all: () => readonly HeldSaga[];
  has: (saga: Which) => boolean;
  /** By the monotonic clock. */
  isAlive: (saga: Which) => boolean;
  add: (saga: HeldSaga) => void;
  /** It has become as large as it says. */
  grow: (saga: HeldSaga) => void;
  renew: (saga: Which, endsAtMs: number) => void;
  remove: (saga: Which) => void;
}>;

export function createHeldSagas(clock: Clock): HeldSagas {
  const held = new Map<string, { saga: HeldSaga; lease: Lease; bytes: number }>();
  let bytes = 0;
  const mineOf = ({ id, lease }: Which) => {
    const mine = held.get(id);
    return mine?.lease.epoch === lease.epoch ? mine : undefined;
  };
  return {
    size: () => held.size,
    bytes: () => bytes,
    all: () => [...held.values()].map(({ saga }) => saga),
    has: (saga) => mineOf(saga) !== undefined,
    isAlive(saga) {
      const mine = mineOf(saga);
      return mine !== undefined && remainingMs(mine.lease, clock) > 0;
    },
    add(saga) {
      bytes += saga.bytes - (held.get(saga.id)?.bytes ?? 0);
      held.set(saga.id, { saga, lease: saga.lease, bytes: saga.bytes });
    },
    grow(saga) {
      const mine = mineOf(saga);
      if (mine === undefined) return;
      bytes += saga.bytes - mine.bytes;
      mine.bytes = saga.bytes;
    },
    renew(saga, endsAtMs) {
      const mine = mineOf(saga);
      if (mine !== undefined) mine.lease = { ...mine.lease, endsAtMs };
    },
    remove(saga) {
      const mine = mineOf(saga);
      if (mine === undefined) return;
      bytes -= mine.bytes;
      held.delete(saga.id);
    },
  };
}
