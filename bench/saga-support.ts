import { randomUUID } from 'node:crypto';
import { systemClock } from '../src/kernel/clock.ts';
import type { Database } from '../src/platform/postgres/database.ts';
import { createWake } from '../src/platform/work/wake.ts';
import type { Step, Workflow } from '../src/saga/domain/workflow/workflow.ts';
import { createDatabaseClock } from '../src/saga/run/database-clock.ts';
import type { AddEvents } from '../src/saga/write-sagas.ts';
import { createCallSemaphore } from '../src/saga/run/call-semaphore.ts';
import { engineSql } from '../src/saga/run/engine-sql.ts';
import type { SendCall } from '../src/saga/run/services/service.ts';
import { createSagaEngine } from '../src/saga/run/run-sagas.ts';

const step = (name: string): Step => ({
  name,
  service: 'nobody',
  method: `POST /${name}`,
  undo: { kind: 'call', method: `POST /undo-${name}` },
  isPivot: false,
  timeoutMs: 30_000,
  retry: { maxAttempts: 3, backoff: 'exponential', initialIntervalMs: 1000 },
  input: null,
  undoInput: null,
});

export const threeSteps: Workflow = {
  name: 'bench',
  deadlineMs: null,
  steps: [step('reserve'), step('charge'), step('ship')],
};

export type BenchEngine = Readonly<{
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Resolves when so many sagas have come to their end. Nothing is asked of the database for it. */
  ended(count: number): Promise<void>;
}>;

export type BenchOptions = Readonly<{ atOnce: number; send: SendCall; addEvents?: AddEvents }>;

/** The engine as the server runs it; without `addEvents` there are no events. */
export function createBenchEngine(db: Database, { atOnce, send, addEvents }: BenchOptions): BenchEngine {
  const worker = { db, clock: systemClock, owner: `bench-${randomUUID()}`, onStale: () => {} };
  const time = createDatabaseClock(systemClock);
  const wake = createWake(db, { listen: true, worker: worker.owner, onError: () => {} });
  const enough = Promise.withResolvers<void>();
  let ends = 0;
  let wanted = Infinity;
  const engine = createSagaEngine(
    {
      ...engineSql({ db, worker, time, addEvents: addEvents ?? null }),
      clock: systemClock,
      calls: createCallSemaphore({ maxInFlight: atOnce, maxInFlightTo: () => atOnce, maxWaiting: atOnce }),
      send,
      serviceOf: () => ({ isIdempotent: true }),
      now: time.now,
      random: Math.random,
      onSettled(_, { state }) {
        if (state.status !== 'COMPLETED' && state.status !== 'FAILED') return;
        ends += 1;
        if (ends >= wanted) enough.resolve();
      },
      waitForWork: (ms, signal) => wake.wait('saga', ms, signal),
      onError: (what, error) => process.stderr.write(`${what}: ${String(error)}\n`),
    },
    { maxLeased: 2 * atOnce, leaseMs: 15_000, pollMs: 1000 },
  );
  return {
    async ended(count) {
      wanted = count;
      if (ends < wanted) await enough.promise;
    },
    async start() {
      await wake.start();
      await engine.start();
    },
    async stop() {
      await engine.stop(AbortSignal.timeout(5000));
      await wake.stop(AbortSignal.timeout(1000));
    },
  };
}
