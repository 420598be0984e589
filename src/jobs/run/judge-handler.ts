import { messageOf } from '../../kernel/errors.ts';
import { jsonExtent } from '../../kernel/json-extent.ts';
import { storableJson } from '../../kernel/storable-json.ts';
import { describeThrown } from '../../kernel/thrown.ts';
import { readSignal, type HandlerSignal } from '../domain/handler-signals.ts';
import type { ErrorOrigin, Settlement } from '../settle-jobs.ts';
import type { JobRun } from './job-run.ts';

type Run = Pick<JobRun, 'job' | 'ran'>;

/** Judges a handler's return value. */
export function judgeReturned({ job, ran }: Run, result: unknown): Settlement {
  const signal = readSignal(result);
  if (signal !== undefined) return judgeSignal({ job, ran }, signal, { error: messageOf(result) });
  return { job, ran, outcome: 'completed', result: resultText(result) };
}

/** Judges a thrown value: whatever it is, it costs this job one attempt and affects no other job. */
export function judgeThrown({ job, ran }: Run, error: unknown): Settlement {
  const signal = readSignal(error) ?? { signal: 'retry_after', delayMs: 0 };
  const { message, className, stack } = describeThrown(error);
  return judgeSignal({ job, ran }, signal, { error: message, origin: { className, stack } });
}

function judgeSignal(
  { job, ran }: Run,
  signal: HandlerSignal,
  failure: Readonly<{ error: string; origin?: ErrorOrigin }>,
): Settlement {
  const reason = failure.error;
  switch (signal.signal) {
    case 'snooze':
      return { job, ran, outcome: 'deferred', delayMs: signal.delayMs, reason: 'snoozed by its handler' };
    case 'busy':
      return { job, ran, outcome: 'deferred', delayMs: signal.delayMs, reason, isBusy: true };
    case 'outage':
      return { job, ran, outcome: 'deferred', delayMs: signal.delayMs, reason, isBusy: true, isOutage: true };
    case 'not_retryable':
      return { job, ran, outcome: 'failed', ...failure, isRetryable: false, retryAfterMs: null };
    case 'retry_after':
      return { job, ran, outcome: 'failed', ...failure, isRetryable: true, retryAfterMs: signal.delayMs };
  }
}

const maxResultLength = 1024 * 1024;

/** Null for a result that is not JSON or is too long: the work is done, and a retry would not help. */
function resultText(result: unknown): string | null {
  try {
    const text = JSON.stringify(result) ?? null;
    return text === null || isTooLong(text) ? null : storableJson(text);
  } catch {
    return null;
  }
}

/** As PostgreSQL returns it, with every number written out. */
function isTooLong(text: string): boolean {
  return text.length > maxResultLength || jsonExtent(text, Number.POSITIVE_INFINITY).bytes > maxResultLength;
}
