import { Logger, run } from 'graphile-worker';
import { Pool } from 'pg';
import { bossOneByOne, openBoss, startBoss } from './jobs-support.ts';

/** A peer that waits for jobs of two queues, in a process of its own: node bench/idle-peer.ts graphile|boss */
const url = process.env['DATABASE_URL'] ?? '';
const queues = ['mail', 'reports'];
const nothing = (): void => {};

if (process.argv[2] === 'graphile') await startGraphile();
else await startPgBoss();
process.stdout.write('the peer is ready\n');

async function startGraphile(): Promise<void> {
  const pool = new Pool({ connectionString: url, max: 10 });
  pool.on('error', nothing);
  pool.on('connect', (client) => void client.on('error', nothing));
  await run({
    pgPool: pool,
    taskList: Object.fromEntries(queues.map((queue) => [queue, nothing])),
    logger: new Logger(() => nothing),
    preset: { worker: { concurrentJobs: 10 } },
  });
}

async function startPgBoss(): Promise<void> {
  const boss = await openBoss(url, queues[0] ?? '', { notifies: true });
  for (const queue of queues) {
    await boss.createQueue(queue, { notify: true });
    await startBoss(boss, queue, { handler: nothing, ...bossOneByOne });
  }
  process.once('SIGTERM', () => void boss.stop({ graceful: false }).then(() => process.exit(0)));
}
