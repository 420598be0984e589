import { sleep, type Clock } from '../../kernel/clock.ts';
import { remainingMs, type Lease } from '../../kernel/lease.ts';
import type { SagaState } from '../domain/saga-state.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';

/** A saga that this process has claimed. */
export type LeasedSaga = Readonly<{
  id: string;
  workflow: Workflow;
  /** Published with its events. */
  correlationId: string | null;
  payload: unknown;
  /** On the database's clock. */
  startedAt: number;
  trace: string | null;
  state: SagaState;
  /** The lease of its last worker expired. */
  wasLost: boolean;
  /** Failed rounds in a row: see failed-rounds.ts. */
  failedRounds: number;
  /** No other saga may run in the same process. */
  runsAlone: boolean;
  /** Approximate size of its payload and of the responses of its steps. */
  bytes: number;
  lease: Lease;
}>;

export type LeaseKey = Pick<LeasedSaga, 'id' | 'lease'>;

/**
 * The sagas that this process has leased, with their current leases and total size. A saga that was released and claimed
 * again is a different entry. A saga whose lease was lost counts until its call has ended, because it still uses memory.
 */
export type LeasedSagas = Readonly<{
  size: () => number;
  bytes: () => number;
  /** With their current leases, without those that were lost. */
  all: () => readonly LeasedSaga[];
  has: (saga: LeaseKey) => boolean;
  /** By the monotonic clock. */
  isAlive: (saga: LeaseKey) => boolean;
  add: (saga: LeasedSaga) => void;
  /** Updates its size. */
  resize: (saga: LeasedSaga) => void;
  renew: (saga: LeaseKey, endsAtMs: number) => void;
  lose: (saga: LeaseKey) => void;
  remove: (saga: LeaseKey) => void;
  /** Waits until a saga was removed and no more than this many are left, at most this long. */
  waitForRoom: (maxSize: number, maxMs: number, signal: AbortSignal) => Promise<void>;
}>;

const keyOf = ({ id, lease }: LeaseKey): string => `${id} ${lease.epoch}`;

export function createLeasedSagas(clock: Clock): LeasedSagas {
  const leased = new Map<string, { saga: LeasedSaga; lease: Lease; bytes: number; isLost: boolean }>();
  let bytes = 0;
  let onRemoved = (): void => {};
  return {
    size: () => leased.size,
    bytes: () => bytes,
    all: () =>
      [...leased.values()].filter(({ isLost }) => !isLost).map(({ saga, lease }) => ({ ...saga, lease })),
    has: (saga) => leased.has(keyOf(saga)),
    isAlive(saga) {
      const entry = leased.get(keyOf(saga));
      return entry !== undefined && !entry.isLost && remainingMs(entry.lease, clock) > 0;
    },
    add(saga) {
      bytes += saga.bytes;
      leased.set(keyOf(saga), { saga, lease: saga.lease, bytes: saga.bytes, isLost: false });
    },
    resize(saga) {
      const entry = leased.get(keyOf(saga));
      if (entry === undefined) return;
      bytes += saga.bytes - entry.bytes;
      entry.bytes = saga.bytes;
    },
    renew(saga, endsAtMs) {
      const entry = leased.get(keyOf(saga));
      if (entry !== undefined) entry.lease = { ...entry.lease, endsAtMs };
    },
    lose(saga) {
      const entry = leased.get(keyOf(saga));
      if (entry !== undefined) entry.isLost = true;
    },
    remove(saga) {
      bytes -= leased.get(keyOf(saga))?.bytes ?? 0;
      leased.delete(keyOf(saga));
      onRemoved();
    },
    async waitForRoom(maxSize, maxMs, signal) {
      const room = Promise.withResolvers<void>();
      const ended = new AbortController();
      onRemoved = () => {
        if (leased.size <= maxSize) room.resolve();
      };
      await Promise.race([room.promise, sleep(maxMs, AbortSignal.any([signal, ended.signal]))]);
      ended.abort();
      onRemoved = () => {};
    },
  };
}
