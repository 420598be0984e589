import { notRetryable, retryAfter, type JobHandler } from '../../src/sdk/index.ts';
import type { Mail } from './mail.ts';

/** How the post office takes a mail, with the numbers that SMTP servers answer with. */
export type PostOffice = (mail: Mail, signal: AbortSignal) => Promise<number>;

/** Sends one mail. What it throws decides how the job goes on. */
export function mailSender(post: PostOffice): JobHandler<Mail> {
  return async ({ payload, retryCount }, { signal }) => {
    const answer = await post(payload, signal);
    if (answer === 421) throw retryAfter(1000, 'the mail server has too much to do');
    if (answer >= 500) throw notRetryable(`the mail server refuses ${payload.to}: ${answer}`);
    if (answer >= 400) throw new Error(`the mail server answered ${answer}`);
    return { answer, attempt: retryCount + 1 };
  };
}
