import { existsSync } from 'node:fs';
import { Pool } from 'pg';
import { sleep } from '../../src/kernel/clock.ts';
import { jobs, type JobContext, type JobEvent } from '../../src/sdk/index.ts';

/**
 * A service that handles jobs, in a process of its own, so that it can really be killed and stopped. What a job does
 * to it stands in its payload. Prints one line of JSON per event, the first one when it works.
 */
export type Payload = Readonly<{
  act: 'ok' | 'hang' | 'throw' | 'exit' | 'kill' | 'block' | 'eat';
  /** How long it takes. */
  ms?: number;
  /** `block` lasts until there is this file, and the attempt after it until there is the other one. */
  files?: readonly [block: string, next: string];
  /** Only so many times; after that it is well-behaved. */
  times?: number;
}>;

const {
  DATABASE_URL = '',
  QUEUES = '',
  LEASE_MS = '3000',
  TIMEOUT_MS = '20000',
  CONCURRENCY = '10',
} = process.env;

const print = (line: unknown): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const pool = new Pool({ connectionString: DATABASE_URL, max: 8, application_name: 'chaos-worker' });
pool.on('error', () => {});
const note = (jobId: string, what: 'started' | 'done'): Promise<unknown> =>
  pool.query('INSERT INTO ledger (job_id, what, pid) VALUES ($1, $2, $3)', [jobId, what, process.pid]);

async function perform({ act, ms = 0 }: Pick<Payload, 'act' | 'ms'>, { signal }: JobContext): Promise<void> {
  switch (act) {
    case 'ok':
      return sleep(ms, signal);
    case 'block':
      return;
    case 'hang':
      return new Promise(() => {});
    case 'throw':
      throw new Error('it fails every time');
    case 'exit':
      return process.exit(7);
    case 'kill':
      process.kill(process.pid, 'SIGKILL');
      return new Promise(() => {});
    case 'eat':
      for (const eaten: unknown[] = []; ;) eaten.push(Array.from({ length: 10_000 }, () => ({ eaten })));
  }
}

/** Nothing else of the process runs meanwhile: no lease is renewed, and none is found to be over. */
function blockUntil(file: string): void {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(file)) Atomics.wait(clock, 0, 0, 20);
}

const onEvent = (event: JobEvent): void =>
  print(event.type === 'trouble' ? { ...event, error: String(event.error) } : event);

const workers = jobs.workers({ pool, pollMs: 50, leaseMs: Number(LEASE_MS), onEvent });
for (const queue of QUEUES.split(','))
  await workers.work({
    queue,
    concurrency: Number(CONCURRENCY),
    timeoutMs: Number(TIMEOUT_MS),
    async handler({ jobId, payload, retryCount }, context) {
      const { times = Infinity, files, ...how } = payload as Payload;
      const isBad = retryCount < times;
      await note(jobId, 'started');
      await perform(isBad ? how : { act: 'ok' }, context);
      if (!isBad && files !== undefined) while (!existsSync(files[1])) await sleep(20);
      await note(jobId, 'done');
      if (isBad && files !== undefined) blockUntil(files[0]);
    },
  });

process.once('SIGTERM', () => void workers.stop({ withinMs: 10_000 }).then(() => process.exit(0)));
print({ type: 'ready' });
