import { messageOf } from '../../kernel/errors.ts';
import { storableJson } from '../../kernel/storable-json.ts';
import { readSignal, type HandlerSignal } from '../domain/handler-signals.ts';
import type { JobRun } from './job-run.ts';
import type { JobEnd } from './ports.ts';

type Of = Pick<JobRun, 'job' | 'startedAt'>;

/** What a handler's return value says about its job. */
export function endOf({ job, startedAt }: Of, result: unknown): JobEnd {
  const told = readSignal(result);
  if (told !== undefined) return endOfSignal({ job, startedAt }, told, messageOf(result));
  return { job, startedAt, end: 'completed', result: resultText(result) };
}

/** What an error says that a handler has thrown. */
export function endOfError({ job, startedAt }: Of, error: unknown): JobEnd {
  const told = readSignal(error);
  if (told !== undefined) return endOfSignal({ job, startedAt }, told, messageOf(error));
  return {
    job,
    startedAt,
    end: 'failed',
    error: messageOf(error),
    isRetryable: true,
    retryAfterMs: null,
  };
}

function endOfSignal({ job, startedAt }: Of, told: HandlerSignal, error: string): JobEnd {
  switch (told.signal) {
    case 'snooze':
      return { job, startedAt, end: 'deferred', delayMs: told.delayMs, reason: 'snoozed by its handler' };
    case 'busy':
      return { job, startedAt, end: 'deferred', delayMs: told.delayMs, reason: error, isBusy: true };
    case 'not_retryable':
      return { job, startedAt, end: 'failed', error, isRetryable: false, retryAfterMs: null };
    case 'retry_after':
      return { job, startedAt, end: 'failed', error, isRetryable: true, retryAfterMs: told.delayMs };
  }
}

const longestResult = 1024 * 1024;

/** What JSON cannot say, or is too long, is left out: the work is done, and doing it again would not help. */
function resultText(result: unknown): string | null {
  try {
    const text = JSON.stringify(result) ?? null;
    return text === null || text.length > longestResult ? null : storableJson(text);
  } catch {
    return null;
  }
}
