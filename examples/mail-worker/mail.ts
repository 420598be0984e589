import { defineQueue } from '@redrive/client';

/** The payload of a job. Used by code that enqueues jobs and by code that handles them. */
export type Mail = Readonly<{ to: string; subject: string }>;

/** A Standard Schema (Zod, Valibot, ArkType and others) can be passed instead of the function. */
export const mail = defineQueue('mail', (payload): Mail => {
  const { to, subject } = (payload ?? {}) as Partial<Mail>;
  if (typeof to !== 'string' || typeof subject !== 'string') throw new Error('a mail has `to` and `subject`');
  return { to, subject };
});
