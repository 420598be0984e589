import type { Clock } from '../../kernel/clock.ts';
import { startPermitMs } from '../queue-pause.ts';

/** Renewed when less than this is left. */
const renewBeforeMs = 600;

/**
 * Whether a worker may start jobs of its queue: for `startPermitMs` after it saw that the queue is not paused, by its
 * monotonic clock.
 */
export type StartPermit = Readonly<{
  isValid(): boolean;
  isRenewalDue(): boolean;
  /** The queue was not paused at this time; a claim that returns jobs shows that too. */
  confirm(checkedAtMs: number): void;
  /** Checks the pause unless the permit is valid; returns whether it is valid now. */
  ensure(): Promise<boolean>;
}>;

export function createStartPermit(clock: Clock, isPaused: () => Promise<boolean>): StartPermit {
  let endsAtMs = -Infinity;
  const leftMs = (): number => endsAtMs - clock.monotonicMs();
  const confirm = (checkedAtMs: number): void =>
    void (endsAtMs = Math.max(endsAtMs, checkedAtMs + startPermitMs));
  return {
    isValid: () => leftMs() > 0,
    isRenewalDue: () => leftMs() < renewBeforeMs,
    confirm,
    async ensure() {
      if (leftMs() > 0) return true;
      const checkedAtMs = clock.monotonicMs();
      if (!(await isPaused())) confirm(checkedAtMs);
      return leftMs() > 0;
    },
  };
}
