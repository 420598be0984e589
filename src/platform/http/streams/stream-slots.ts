import type { AppError } from '../../../kernel/errors.ts';

/** Bounds how many streams are open in this process. */
export type StreamSlots = Readonly<{
  /** Returns what gives the slot back; throws if none is free. */
  take(): () => void;
}>;

/** `refuse` makes the error for those who come when all slots are taken. */
export function createStreamSlots(limit: number, refuse: (limit: number) => AppError): StreamSlots {
  let taken = 0;
  return {
    take() {
      if (taken >= limit) throw refuse(limit);
      taken += 1;
      let isTaken = true;
      return () => {
        if (isTaken) taken -= 1;
        isTaken = false;
      };
    },
  };
}
