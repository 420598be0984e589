import { onceAborted, sleep } from '../../kernel/clock.ts';

/** Counts the orders that a dispatcher has claimed and not yet settled, and the bytes of their requests. */
export type SendSlots = Readonly<{
  count(): number;
  bytes(): number;
  take(slots: Readonly<{ count?: number; bytes?: number }>): void;
  free(slots: Readonly<{ count?: number; bytes?: number }>): void;
  /** Resolves when slots are freed, when the signal aborts, or after the time. */
  someFreed(ms: number, signal: AbortSignal): Promise<void>;
  /** Resolves when all slots are free, or when the deadline aborts. */
  allFreed(deadline: AbortSignal): Promise<void>;
}>;

export function createSendSlots(): SendSlots {
  let taken = 0;
  let takenBytes = 0;
  let onFreed = (): void => {};
  const isAnyTaken = (): boolean => taken > 0;
  return {
    count: () => taken,
    bytes: () => takenBytes,
    take({ count = 0, bytes = 0 }) {
      taken += count;
      takenBytes += bytes;
    },
    free({ count = 0, bytes = 0 }) {
      taken -= count;
      takenBytes -= bytes;
      onFreed();
    },
    async someFreed(ms, signal) {
      const freed = new AbortController();
      onFreed = () => freed.abort();
      await sleep(ms, AbortSignal.any([freed.signal, signal]));
      onFreed = () => {};
    },
    async allFreed(deadline) {
      while (isAnyTaken() && !deadline.aborted) {
        const freed = Promise.withResolvers<void>();
        onFreed = freed.resolve;
        await Promise.race([freed.promise, onceAborted(deadline)]);
      }
    },
  };
}
