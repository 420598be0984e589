import { notRetryable, retryAfter, type JobHandler } from '@redrive/client';
import type { Mail } from './mail.ts';

/** Sends one mail and returns the SMTP status. */
export type PostOffice = (mail: Mail, signal: AbortSignal) => Promise<number>;

/** Sends one mail. What it throws decides whether and when the job is retried. */
export function mailSender(post: PostOffice): JobHandler<Mail> {
  return async ({ payload, retryCount }, { signal }) => {
    const answer = await post(payload, signal);
    if (answer === 421) throw retryAfter(1000, 'the mail server is busy');
    if (answer >= 500) throw notRetryable(`the mail server refuses ${payload.to}: ${answer}`);
    if (answer >= 400) throw new Error(`the mail server answered ${answer}`);
    return { answer, attempt: retryCount + 1 };
  };
}
