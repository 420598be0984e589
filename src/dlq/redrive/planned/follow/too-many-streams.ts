import { AppError } from '../../../../kernel/errors.ts';

export function tooManyStreams(limit: number): AppError {
  return new AppError(
    'SYS_DLQ_TOO_MANY_STREAMS',
    'unavailable',
    `this process has ${limit} open streams; read the redrive instead, or try again`,
    { retryAfterMs: 5000 },
  );
}
