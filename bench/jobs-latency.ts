import { makeWorkerUtils, Logger } from 'graphile-worker';
import { setTimeout as wait } from 'node:timers/promises';
import { cpus } from 'node:os';
import { Client, Pool } from 'pg';
import { jobs } from '../src/sdk/jobs.ts';
import {
  bossOneByOne,
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
 * Both peers are told of a job by PostgreSQL, as ours is. Goals: at most 1.5 times the floor, no worse than graphile-worker. A disk is now faster and now slower, so they take
 * turns.
 * node bench/jobs-latency.ts [jobs] [rounds]
 */
const count = Number(process.argv[2] ?? 100);
const rounds = Number(process.argv[3] ?? 5);
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
  await pool.query(
    `CREATE TABLE floor_jobs (id bigserial PRIMARY KEY, status text NOT NULL DEFAULT 'pending')`,
  );
  const contenders = [
    ['floor: insert, NOTIFY, update', measureFloor],
    ['ours', measureOurs],
    ['graphile-worker', () => measureGraphile(false)],
    ['graphile-worker, tuned for drain', () => measureGraphile(true)],
    ['pg-boss, with notifications', measureBoss],
  ] as const;
  const times = new Map<string, number[]>(contenders.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const [name, run] of contenders) times.get(name)?.push(...(await run()));
  const sorted = [...times].map(([name, all]) => [name, all.toSorted((a, b) => a - b)] as const);
  process.stdout.write(
    `\nFrom the call that adds a job to its handler, ${rounds} times ${count} single jobs (Node ${process.version}, ${cpus().length} cores)\n`,
  );
  for (const [name, all] of sorted) print(name, all, sorted[0]?.[1] ?? []);
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
  return times;
}

async function measureFloor(): Promise<readonly number[]> {
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
  const boss = await openBoss(url, queue, { notifies: true });
  const running = await startBoss(boss, queue, { handler, ...bossOneByOne });
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
