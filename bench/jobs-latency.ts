import { makeWorkerUtils, Logger } from 'graphile-worker';
import { setTimeout as wait } from 'node:timers/promises';
import { cpus } from 'node:os';
import { Client, Pool } from 'pg';
import { jobs } from '../src/sdk/jobs.ts';
import {
  graphileTask,
  migrateGraphile,
  openBoss,
  startBoss,
  startGraphile,
  startOurs,
} from './jobs-support.ts';
import { openPostgres } from './support.ts';

/**
 * How long a single job takes from the call that adds it to its handler, while nothing else is to do.
 *   floor  what no queue in PostgreSQL can do without: an insert that notifies, and an update by whoever hears of it
 * Goals: at most 1.5 times the floor, no worse than graphile-worker.
 * node bench/jobs-latency.ts [jobs]
 */
const count = Number(process.argv[2] ?? 300);
const warmUps = 20;
const pauseMs = 20;
const queue = 'bench';
const ground = await openPostgres();
const { url, db } = ground;
const pool = new Pool({ connectionString: url, max: 4 });
let onStart = (): void => {};
const handler = (): void => onStart();
try {
  await migrateGraphile(url);
  process.stdout.write(
    `\nFrom the call that adds a job to its handler, ${count} single jobs (Node ${process.version}, ${cpus().length} cores)\n`,
  );
  const floor = await measureFloor();
  print('floor: insert, NOTIFY, update', floor, floor);
  print('ours', await measureOurs(), floor);
  print('graphile-worker', await measureGraphile(false), floor);
  print('graphile-worker, tuned for drain', await measureGraphile(true), floor);
  print('pg-boss, with notify', await measureBoss(), floor);
} finally {
  await pool.end();
  await ground.stop();
}

async function measure(add: () => Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = [];
  for (let i = 0; i < count + warmUps; i += 1) {
    const started = Promise.withResolvers<number>();
    onStart = () => started.resolve(performance.now());
    const begin = performance.now();
    await add();
    const ms = (await started.promise) - begin;
    if (i >= warmUps) times.push(ms);
    await wait(pauseMs);
  }
  return times.toSorted((a, b) => a - b);
}

async function measureFloor(): Promise<readonly number[]> {
  await pool.query(
    `CREATE TABLE floor_jobs (id bigserial PRIMARY KEY, status text NOT NULL DEFAULT 'pending')`,
  );
  const listener = new Client({ connectionString: url });
  await listener.connect();
  await listener.query('LISTEN floor');
  listener.on('notification', () => {
    const text = `UPDATE floor_jobs SET status = 'running' WHERE id = (
      SELECT id FROM floor_jobs WHERE status = 'pending' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)`;
    void pool.query({ name: 'floor-claim', text }).then(handler);
  });
  const text = `WITH added AS (INSERT INTO floor_jobs DEFAULT VALUES RETURNING id)
                SELECT pg_notify('floor', '') FROM added`;
  const times = await measure(() => pool.query({ name: 'floor-add', text }));
  await listener.end();
  return times;
}

async function measureOurs(): Promise<readonly number[]> {
  const running = await startOurs(db, queue, handler);
  const times = await measure(() => jobs.enqueue(pool, queue, { id: 1 }));
  await running.stop();
  return times;
}

async function measureGraphile(isTuned: boolean): Promise<readonly number[]> {
  const running = await startGraphile(url, handler, { isTuned });
  const utils = await makeWorkerUtils({ pgPool: pool, logger: new Logger(() => () => {}) });
  const times = await measure(() => utils.addJob(graphileTask, { id: 1 }));
  await running.stop();
  await utils.release();
  return times;
}

async function measureBoss(): Promise<readonly number[]> {
  const boss = await openBoss(url, queue);
  const running = await startBoss(boss, queue, { handler, batchSize: 1 });
  const times = await measure(() => boss.send(queue, { id: 1 }));
  await running.stop();
  await boss.stop({ graceful: false });
  return times;
}

function print(name: string, times: readonly number[], floor: readonly number[]): void {
  const at = (part: number, of = times): number => of[Math.floor(of.length * part)] ?? NaN;
  const ms = (value: number): string => value.toFixed(1).padStart(7);
  process.stdout.write(
    `  ${name.padEnd(36)} p50 ${ms(at(0.5))} ms   p99 ${ms(at(0.99))} ms   ${(at(0.5) / at(0.5, floor)).toFixed(2)} times the floor's p50\n`,
  );
}
