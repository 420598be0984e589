import { Pool } from 'pg';
import { jobs } from '../../src/sdk/index.ts';
import { mail } from './mail.ts';
import { mailSender } from './send-mail.ts';

/** A process that sends mails until it is told to stop: `DATABASE_URL=… node examples/mail-worker/mail-worker.ts`. */
const pool = new Pool({ connectionString: process.env['DATABASE_URL'] });

/** In place of a real post office: some addresses do not exist. */
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

process.once('SIGTERM', () => void worker.stop().then(() => pool.end()));
