import { randomUUID } from 'node:crypto';
import { PgBoss } from 'pg-boss';
import { Logger, run, runMigrations } from 'graphile-worker';
import { Pool } from 'pg';
import { createQueues } from '../src/jobs/queues.ts';
import { QueueWorker } from '../src/jobs/run/worker.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { createSoloGate } from '../src/platform/work/solo-gate.ts';
import type { Database } from '../src/platform/postgres/database.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { createWake } from '../src/platform/work/wake.ts';

/** A handler that does nothing but count, and the moment when all are done. */
export type Counter = Readonly<{ handler: () => void; all: Promise<void> }>;

export function countTo(count: number): Counter {
  const { promise, resolve } = Promise.withResolvers<void>();
  let done = 0;
  return {
    all: promise,
    handler() {
      done += 1;
      if (done === count) resolve();
    },
  };
}

export type Running = Readonly<{ stop(): Promise<void> }>;

/** Ours as the library runs it, in this process. */
export async function startOurs(db: Database, queue: string, handler: () => void): Promise<Running> {
  const queues = createQueues(db);
  await queues.refresh();
  const owner = `bench-${randomUUID()}`;
  const worker = { db, clock: systemClock, owner, onStale: fail('stale writes') };
  const wake = createWake(db, { listen: true, worker: owner, onError: fail('LISTEN') });
  const runner = new QueueWorker(
    {
      db,
      worker,
      queues,
      onSettleRetry: fail('settling'),
      solo: createSoloGate(),
      waitForWork: (name, ms, signal) => wake.wait(`jobs:${name}`, ms, signal),
      onSettled: () => {},
      onError: fail('the worker'),
    },
    {
      queue,
      handler,
      concurrency: 24,
      maxPrefetch: 2000,
      timeoutMs: () => 60_000,
      leaseMs: 30_000,
      pollMs: 1000,
    },
  );
  await wake.start();
  await runner.start();
  return {
    async stop() {
      await runner.stop(AbortSignal.timeout(10_000));
      await wake.stop(AbortSignal.timeout(1000));
    },
  };
}

function fail(what: string): (...details: unknown[]) => void {
  return (...details) => process.stderr.write(`${what}: ${details.map(String).join(' ')}\n`);
}

export const graphileTask = 'nothing';

/** As its page on performance says: a local queue of 500, completion in batches, 24 at once, a pool of 25. */
export async function startGraphile(
  url: string,
  handler: () => void,
  { isTuned = true } = {},
): Promise<Running> {
  const pool = new Pool({ connectionString: url, max: 25 });
  pool.on('error', () => {});
  pool.on('connect', (client) => void client.on('error', () => {}));
  const tuned = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
  const runner = await run({
    pgPool: pool,
    noHandleSignals: true,
    taskList: { [graphileTask]: handler },
    logger: new Logger(() => () => {}),
    preset: { worker: { concurrentJobs: isTuned ? 24 : 1, maxPoolSize: 25, ...(isTuned ? tuned : {}) } },
  });
  return {
    async stop() {
      await runner.stop();
      await pool.end();
    },
  };
}

export async function migrateGraphile(url: string): Promise<void> {
  await runMigrations({ connectionString: url, logger: new Logger(() => () => {}) });
}

/**
 * With notifications workers hear of a job at once, which needs both the option of the instance and that of the queue;
 * its default is to poll. They cost something at each insert, so that a bench of throughput goes without them.
 */
export async function openBoss(
  url: string,
  queue: string,
  { notifies }: Readonly<{ notifies: boolean }>,
): Promise<PgBoss> {
  const boss = new PgBoss({ connectionString: url, max: 25, useListenNotify: notifies });
  boss.on('error', fail('pg-boss'));
  // It says here that it polls after all.
  boss.on('warning', fail('pg-boss'));
  await boss.start();
  await boss.createQueue(queue, { notify: notifies });
  return boss;
}

/** How many jobs a worker fetches at once, and how many workers there are; the best of them counts. */
export const bossPaces: readonly BossPace[] = [
  { batchSize: 500, localConcurrency: 2, pollSeconds: 0.5 },
  { batchSize: 1000, localConcurrency: 2, pollSeconds: 0.5 },
  { batchSize: 1000, localConcurrency: 4, pollSeconds: 0.5 },
];

/** One job after another; where it polled after all, nobody would wait for the end of the bench. */
export const bossOneByOne: BossPace = { batchSize: 1, localConcurrency: 1, pollSeconds: 60 };

/** `pollSeconds` counts where nobody notifies; 0.5 is the least. */
export type BossPace = Readonly<{ batchSize: number; localConcurrency: number; pollSeconds: number }>;

/** Fetches without a pause while batches are full. */
export async function startBoss(
  boss: PgBoss,
  queue: string,
  { handler, pollSeconds, ...pace }: BossPace & Readonly<{ handler: () => void }>,
): Promise<Running> {
  await boss.work(
    queue,
    { ...pace, pollingIntervalSeconds: pollSeconds, burstWhenBatchFull: true },
    async (jobs) => {
      for (const _ of jobs) handler();
    },
  );
  return { stop: () => boss.offWork(queue) };
}

/** The bare claim and update: two statements per batch, no epoch, no history, nothing else. */
export async function drainFloor(url: string, count: number): Promise<void> {
  const pool = new Pool({ connectionString: url, max: 4 });
  let done = 0;
  const claimAndComplete = async (): Promise<void> => {
    while (done < count) {
      const { rows } = await pool.query<{ id: string; payload: unknown }>({
        name: 'floor-claim',
        text: `WITH picked AS MATERIALIZED (
                 SELECT id FROM floor_jobs WHERE status = 'pending' ORDER BY id LIMIT 500 FOR UPDATE SKIP LOCKED)
               UPDATE floor_jobs j SET status = 'running' FROM picked WHERE j.id = picked.id
               RETURNING j.id, j.payload`,
      });
      if (rows.length === 0) return;
      await pool.query({
        name: 'floor-complete',
        text: `UPDATE floor_jobs SET status = 'completed' WHERE id = ANY($1::bigint[])`,
        values: [rows.map(({ id }) => id)],
      });
      done += rows.length;
    }
  };
  await Promise.all([claimAndComplete(), claimAndComplete()]);
  await pool.end();
}

export async function fillFloor(db: Database, count: number): Promise<void> {
  await db.query(sql`DROP TABLE IF EXISTS floor_jobs`);
  await db.query(sql`
    CREATE TABLE floor_jobs (id bigserial PRIMARY KEY, status text NOT NULL DEFAULT 'pending', payload jsonb NOT NULL)`);
  await db.query(sql`CREATE INDEX ON floor_jobs (id) WHERE status = 'pending'`);
  await db.query(sql`
    INSERT INTO floor_jobs (payload) SELECT jsonb_build_object('id', i) FROM generate_series(1, ${count}::int) AS i`);
}
