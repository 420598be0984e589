import { randomUUID } from 'node:crypto';
import { makeWorkerUtils, Logger } from 'graphile-worker';
import { Pool } from 'pg';
import { sql } from '../src/platform/postgres/sql.ts';
import { jobs } from '../src/sdk/jobs.ts';
import { graphileTask, migrateGraphile, openBoss } from './jobs-support.ts';
import { openPostgres, printTable, timed, type Line } from './support.ts';

/**
 * How fast jobs are added.
 *   in bulk    by the call that each library has for it, so many at a time; goal: faster than both peers
 *   one by one on 16 connections, each in a transaction of its own; goal: 0.7 of a bare insert into the table that jobs
 *              are in (decision 0054). The floor is a lean table, without all that it takes to work on them
 * node bench/jobs-enqueue.ts [jobs] [rounds]
 */
const count = Number(process.argv[2] ?? 100_000);
const rounds = Number(process.argv[3] ?? 5);
const chunk = 5000;
const singles = Math.ceil(count / 10);
const connections = 16;
const queue = 'bench';
const ours = 'ours, jobs.enqueue';
const bareJob = 'a bare insert into jobs.job_queue';
const ground = await openPostgres();
const { url, db } = ground;
const pool = new Pool({ connectionString: url, max: connections });
// The server stops first where something goes wrong.
pool.on('error', () => {});
try {
  await migrateGraphile(url);
  const boss = await openBoss(url, queue, { notifies: false });
  const graphile = await makeWorkerUtils({ pgPool: pool, logger: new Logger(() => () => {}) });
  await db.query(sql`CREATE TABLE bare_jobs (
    id uuid PRIMARY KEY, queue text NOT NULL, payload jsonb NOT NULL, run_at timestamptz NOT NULL DEFAULT now())`);
  await db.query(sql`CREATE INDEX ON bare_jobs (queue, run_at)`);

  const bulk = new Map<string, number[]>();
  const single = new Map<string, number[]>();
  for (let round = 0; round < rounds; round += 1) {
    await note(bulk, 'floor: one bare insert', count, () => inChunks((all) => insertBare(all)));
    await note(bulk, 'graphile-worker, addJobs', count, () =>
      inChunks((all) => graphile.addJobs(all.map((payload) => ({ identifier: graphileTask, payload })))),
    );
    await note(bulk, 'pg-boss, insert', count, () =>
      inChunks((all) =>
        boss.insert(
          queue,
          all.map((data) => ({ data })),
        ),
      ),
    );
    await note(bulk, 'ours, jobs.enqueueMany', count, () =>
      inChunks((all) =>
        jobs.enqueueMany(
          pool,
          queue,
          all.map((payload) => ({ payload })),
        ),
      ),
    );
    await note(single, 'floor: a bare insert', singles, () => oneByOne(insertOneBare));
    await note(single, bareJob, singles, () => oneByOne(insertOneJob));
    await note(single, ours, singles, () => oneByOne((payload) => jobs.enqueue(pool, queue, payload)));
    await note(single, 'graphile-worker, addJob', singles, () =>
      oneByOne((payload) => graphile.addJob(graphileTask, payload)),
    );
    await note(single, 'pg-boss, send', singles, () => oneByOne((data) => boss.send(queue, data)));
  }
  printTable(`Enqueue of ${count.toLocaleString('en')} jobs, ${chunk} at a time`, lines(bulk));
  printTable(
    `Enqueue of ${singles.toLocaleString('en')} jobs one by one on ${connections} connections`,
    lines(single),
  );
  const part = middleOf(single.get(ours) ?? []) / middleOf(single.get(bareJob) ?? []);
  process.stdout.write(`  ${ours}: ${part.toFixed(2)} of ${bareJob} (goal 0.7)\n`);
  await graphile.release();
  await boss.stop({ graceful: false });
} finally {
  await pool.end();
  await ground.stop();
}

type Payload = Readonly<{ id: number; to: string }>;

function payloadOf(id: number): Payload {
  return { id, to: `user-${id}@example.com` };
}

async function inChunks(add: (all: readonly Payload[]) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < count; at += chunk)
    await add(Array.from({ length: Math.min(chunk, count - at) }, (_, i) => payloadOf(at + i)));
}

async function oneByOne(add: (payload: Payload) => Promise<unknown>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < singles) {
      next += 1;
      await add(payloadOf(next));
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
}

async function insertBare(all: readonly Payload[]): Promise<void> {
  await pool.query({
    name: 'bare',
    text: `INSERT INTO bare_jobs (id, queue, payload)
           SELECT id, $1, payload FROM unnest($2::uuid[], $3::jsonb[]) AS all_jobs (id, payload)`,
    values: [queue, all.map(() => randomUUID()), all.map((payload) => JSON.stringify(payload))],
  });
}

async function insertOneBare(payload: Payload): Promise<void> {
  await pool.query({
    name: 'one-bare',
    text: `INSERT INTO bare_jobs (id, queue, payload) VALUES ($1, $2, $3)`,
    values: [randomUUID(), queue, JSON.stringify(payload)],
  });
}

async function insertOneJob(payload: Payload): Promise<void> {
  await pool.query({
    name: 'one-job',
    text: `INSERT INTO jobs.job_queue (job_id, queue, payload) VALUES ($1, $2, $3)`,
    values: [randomUUID(), queue, JSON.stringify(payload)],
  });
}

async function note(
  measured: Map<string, number[]>,
  name: string,
  of: number,
  work: () => Promise<void>,
): Promise<void> {
  await db.query(sql`TRUNCATE bare_jobs, jobs.job_queue, pgboss.job, graphile_worker._private_jobs`);
  await db.query(sql`CHECKPOINT`);
  measured.set(name, [...(measured.get(name) ?? []), of / (await timed(work))]);
}

function lines(measured: ReadonlyMap<string, readonly number[]>): readonly Line[] {
  return [...measured].map(([name, all]) => ({
    name,
    perSecond: middleOf(all),
  }));
}

function middleOf(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[all.length >> 1] ?? NaN;
}
