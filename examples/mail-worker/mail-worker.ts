import { Pool } from 'pg';
import { jobs } from '@redrive/client';
import { mail } from './mail.ts';
import { mailSender } from './send-mail.ts';

/** Sends mails until it is stopped with Ctrl-C or SIGTERM. */
const pool = new Pool({ connectionString: process.env['DATABASE_URL'] });

/** Stands for an SMTP server: addresses that end in .invalid do not exist. */
const post = async ({ to, subject }: Readonly<{ to: string; subject: string }>): Promise<number> => {
  if (to.endsWith('.invalid')) return 550;
  process.stdout.write(`to ${to}: ${subject}\n`);
  return 250;
};

const worker = await jobs.work({
  pool,
  queue: mail,
  concurrency: 5,
  timeoutMs: 10_000,
  handler: mailSender(post),
});

process.stdout.write('waiting for mails\n');
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => void worker.stop().then(() => pool.end()));
