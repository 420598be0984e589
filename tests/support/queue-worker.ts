import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { EnqueuedJob } from '../../src/jobs/enqueue/enqueue-job.ts';
import { readPayload } from '../../src/jobs/read-payload.ts';
import {
  QueueWorker,
  type Handler,
  type QueueWorkerDeps,
  type QueueWorkerOptions,
} from '../../src/jobs/run/worker.ts';
import { sleep, systemClock } from '../../src/kernel/clock.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import type { Sql } from '../../src/platform/postgres/sql.ts';
import { createSoloGate, type SoloGate } from '../../src/platform/work/solo-gate.ts';
import type { TestDatabase } from './database.ts';
import { createTestJobStore, fixedQueues } from './job-store.ts';
import { createTestWorker } from './worker.ts';

let queues = 0;

export type WorkerScene = Partial<QueueWorkerOptions> &
  Readonly<{
    keepCompleted?: boolean;
    solo?: SoloGate;
    /** Added to the worker's monotonic clock. */
    skewMs?: () => number;
    wrapClaim?: (claim: Claim) => Claim;
    wrapReadPayload?: (read: ReadPayload) => ReadPayload;
    /** Runs before each statement of the worker. */
    beforeQuery?: (text: string) => Promise<void> | void;
    mayFail?: boolean;
    isLimited?: boolean;
    maxRetries?: number;
    /** In place of the test's own. */
    database?: Database;
  }>;

type Claim = NonNullable<QueueWorkerDeps['claim']>;
type ReadPayload = NonNullable<QueueWorkerDeps['readPayload']>;

/** Statements of a worker, by a part of their text. */
export const isSettle = (text: string): boolean => text.includes('settled AS');
export const isRenewal = (text: string): boolean => text.includes('renewed AS');

function intercepted(db: Database, beforeQuery: WorkerScene['beforeQuery']): Database {
  if (beforeQuery === undefined) return db;
  return {
    ...db,
    async query<Row>(statement: Sql) {
      await beforeQuery(statement.text);
      return db.query<Row>(statement);
    },
  };
}

/** A worker on a queue of its own. */
export async function startQueueWorker(
  { db: plain }: TestDatabase,
  t: TestContext,
  handler: Handler,
  {
    keepCompleted = true,
    solo,
    skewMs = () => 0,
    wrapClaim = (claim) => claim,
    wrapReadPayload = (read) => read,
    beforeQuery,
    mayFail = false,
    isLimited = false,
    maxRetries = 3,
    database = plain,
    ...more
  }: WorkerScene = {},
) {
  queues += 1;
  const queue = more.queue ?? `queue-${queues}`;
  const db = intercepted(database, beforeQuery);
  const worker = createTestWorker(db, `worker-${queues}`);
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + skewMs() };
  const settings = { backoff: { initialMs: 5, maxMs: 20, jitter: 0 }, maxDeferrals: 3, keepCompleted };
  const store = createTestJobStore(db, {
    worker: { ...worker, clock },
    queues: { ...fixedQueues(settings), isLimited: () => isLimited },
  });
  const runner = new QueueWorker(
    {
      ...store.work,
      claim: wrapClaim((options) => store.claim(options)),
      readPayload: wrapReadPayload((job) => readPayload(db, job)),
      solo: solo ?? createSoloGate(),
      waitForWork: (_queue, ms, signal) => sleep(Math.min(ms, 20), signal),
      onSettled: () => {},
      onError: (what, error) => assert.ok(mayFail, `${what}: ${String(error)}`),
    },
    {
      handler,
      concurrency: 4,
      maxPrefetch: 4,
      timeoutMs: () => 5000,
      leaseMs: 30_000,
      pollMs: 20,
      ...more,
      queue,
    },
  );
  await runner.start();
  t.after(() => runner.stop(AbortSignal.timeout(100)));
  const enqueue = (payload: unknown = {}): Promise<EnqueuedJob> =>
    store.enqueue(queue, { payload: JSON.stringify(payload), maxRetries });
  return { queue, store, worker, runner, enqueue };
}
