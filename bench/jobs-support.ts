import { randomUUID } from 'node:crypto';
import { PgBoss } from 'pg-boss';
import { Logger, run, runMigrations } from 'graphile-worker';
import { Pool } from 'pg';
import { createPostgresJobStore } from '../src/jobs/infra/postgres-job-store.ts';
import { createPostgresQueueBook } from '../src/jobs/infra/postgres-queue-book.ts';
import { createQueueWorker } from '../src/jobs/usecase/work-queue.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { createSoloGate } from '../src/kernel/solo-gate.ts';
import type { Database } from '../src/platform/postgres/database.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { createWake } from '../src/platform/postgres/wake.ts';

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
  const book = createPostgresQueueBook(db);
  await book.refresh();
  const owner = `bench-${randomUUID()}`;
  const worker = { db, clock: systemClock, owner, onStale: fail('stale writes') };
  const wake = createWake(db, { listen: true, worker: owner, onError: fail('LISTEN') });
  const store = createPostgresJobStore(db, worker, { book, onSettleRetry: fail('settling') });
  const runner = createQueueWorker(
    {
      store,
      clock: systemClock,
      solo: createSoloGate(),
      isLimited: book.isLimited,
      waitForWork: (name, ms, signal) => wake.wait(`jobs:${name}`, ms, signal),
      onEnd: () => {},
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

export async function openBoss(url: string, queue: string): Promise<PgBoss> {
  const boss = new PgBoss({ connectionString: url, max: 25 });
  boss.on('error', fail('pg-boss'));
  await boss.start();
  await boss.createQueue(queue, { notify: true });
  return boss;
}

export const bossBatches = [500, 1000] as const;

/** Fetches in batches, without a pause while they are full. */
export async function startBoss(
  boss: PgBoss,
  queue: string,
  { handler, batchSize }: Readonly<{ handler: () => void; batchSize: number }>,
): Promise<Running> {
  await boss.work(
    queue,
    { batchSize, localConcurrency: 2, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
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
