// Outside of this repository: import { … } from 'redrive/client-http'.
import { ApiError, createRedriveClient, type RedriveClient } from '../src/client-http/index.ts';

const timeoutMs = 10_000;

/** Calls end when Redrive has not answered for a long time. Nothing is repeated: the demos do that themselves. */
export function redriveAt(url: string, actor: string): RedriveClient {
  return createRedriveClient({ url, actor, timeoutMs, retries: 0 });
}

/**
 * `later`: the server failed, or did not answer and may have taken it, or the signal ended the call. It has to be sent
 * again, with the same key.
 */
export async function takenOrLater(
  sending: Promise<unknown>,
  signal: AbortSignal,
  isLater = (_status: number): boolean => false,
): Promise<'taken' | 'later'> {
  try {
    await sending;
    return 'taken';
  } catch (error) {
    if (signal.aborted) return 'later';
    if (!(error instanceof ApiError)) throw error;
    const { status } = error;
    if (status === undefined || status >= 500 || isLater(status)) return 'later';
    throw error;
  }
}
