import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { defaultSettings, type QueueSettings } from '../../src/jobs/domain/queue-settings.ts';
import { createPostgresJobStore } from '../../src/jobs/infra/postgres-job-store.ts';
import type { JobStore } from '../../src/jobs/usecase/ports.ts';
import {
  createQueueWorker,
  type Handler,
  type QueueWorkerOptions,
} from '../../src/jobs/usecase/work-queue.ts';
import { sleep, systemClock } from '../../src/kernel/clock.ts';
import { createSoloGate, type SoloGate } from '../../src/kernel/solo-gate.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import type { TestDatabase } from './database.ts';
import { createTestWorker } from './worker.ts';

const settings: QueueSettings = {
  ...defaultSettings,
  backoff: { initialMs: 5, maxMs: 20, jitter: 0 },
  maxDeferrals: 3,
};
let queues = 0;

export type WorkerScene = Partial<QueueWorkerOptions> &
  Readonly<{
    keepCompleted?: boolean;
    solo?: SoloGate;
    /** Added to the worker's monotonic clock. */
    skewMs?: () => number;
    /** Puts something between the worker and its store. */
    wrap?: (store: JobStore) => JobStore;
    mayFail?: boolean;
    isLimited?: boolean;
    maxRetries?: number;
    /** In place of the test's own. */
    database?: Database;
  }>;

/** A queue of its own with a worker on it. */
export async function startQueueWorker(
  { db: plain }: TestDatabase,
  t: TestContext,
  handler: Handler,
  {
    keepCompleted = true,
    solo,
    skewMs = () => 0,
    wrap,
    mayFail = false,
    isLimited = false,
    maxRetries = 3,
    database: db = plain,
    ...more
  }: WorkerScene = {},
) {
  queues += 1;
  const queue = more.queue ?? `queue-${queues}`;
  const worker = createTestWorker(db, `worker-${queues}`);
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + skewMs() };
  const store = createPostgresJobStore(
    db,
    { ...worker, clock },
    {
      book: { settingsOf: () => ({ ...settings, keepCompleted }), isLimited: () => false },
      onSettleRetry: () => {},
    },
  );
  const runner = createQueueWorker(
    {
      store: wrap?.(store) ?? store,
      clock,
      solo: solo ?? createSoloGate(),
      isLimited: () => isLimited,
      waitForWork: (_queue, ms, signal) => sleep(Math.min(ms, 20), signal),
      onEnd: () => {},
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
  const enqueue = (payload: unknown = {}) =>
    store.enqueue({
      queue,
      payload: JSON.stringify(payload),
      dedupeKey: null,
      priority: 0,
      runAt: null,
      maxRetries,
      trace: null,
    });
  return { queue, store, worker, runner, enqueue };
}
