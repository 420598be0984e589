import { AppError } from '../../../../kernel/errors.ts';

/** Bounds how many streams are open in this process. */
export type StreamSlots = Readonly<{
  /** Returns what gives the slot back; throws 503 if none is free. */
  take(): () => void;
}>;

export function createStreamSlots(limit: number): StreamSlots {
  let taken = 0;
  return {
    take() {
      if (taken >= limit)
        throw new AppError(
          'SYS_DLQ_TOO_MANY_STREAMS',
          'unavailable',
          `this process has ${limit} open streams; read the redrive instead, or try again`,
          { retryAfterMs: 5000 },
        );
      taken += 1;
      let isTaken = true;
      return () => {
        if (isTaken) taken -= 1;
        isTaken = false;
      };
    },
  };
}
