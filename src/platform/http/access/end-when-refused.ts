import type { Readable } from 'node:stream';
import { AppError } from '../../../kernel/errors.ts';

/** Calls the listener when a session or a key has ended before its time. Returns what ends that. */
export type Revocations = (listener: () => void) => () => void;

/** How long a stream may outlive a token that has expired. */
const checkEveryMs = 60_000;

export type StreamCheck = Readonly<{
  revocations: Revocations;
  check: () => Promise<void>;
  /** Whether the head of the answer was sent. */
  hasBegun: () => boolean;
  everyMs?: number;
}>;

/**
 * A stream may outlive the login, the token or the key with which it began, so they are checked again: every minute, and
 * at once when one is revoked. A stream that cannot be checked now, for example without the database, continues.
 */
export function endWhenRefused(
  stream: Readable,
  { revocations, check, hasBegun, everyMs = checkEveryMs }: StreamCheck,
): void {
  const look = (): void => {
    check().catch((error: unknown) => {
      // Before its first byte the refusal is the answer.
      if (isRefusal(error)) stream.destroy(hasBegun() ? undefined : error);
    });
  };
  const timer = setInterval(look, everyMs).unref();
  const stop = revocations(look);
  stream.once('close', () => {
    clearInterval(timer);
    stop();
  });
}

function isRefusal(error: unknown): error is AppError {
  return error instanceof AppError && (error.kind === 'unauthenticated' || error.kind === 'forbidden');
}
