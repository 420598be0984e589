import { defineQueue } from '../../src/sdk/index.ts';

/** What a job of the queue carries. Those who add jobs and those who handle them import it from here. */
export type Mail = Readonly<{ to: string; subject: string }>;

/** Any Standard Schema will do in place of the function: Zod, Valibot, ArkType and others. */
export const mail = defineQueue('mail', (payload): Mail => {
  const { to, subject } = (payload ?? {}) as Partial<Mail>;
  if (typeof to !== 'string' || typeof subject !== 'string') throw new Error('a mail has `to` and `subject`');
  return { to, subject };
});
