import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { Answer } from '../../src/saga/domain/judge-answer.ts';
import type { Step, Workflow } from '../../src/saga/domain/workflow/workflow.ts';
import { sagaMigrations } from '../../src/saga/index.ts';
import { createDatabaseClock } from '../../src/saga/run/database-clock.ts';
import { engineSql } from '../../src/saga/run/engine-sql.ts';
import { storeWorkflow } from '../../src/saga/define/workflows-table.ts';
import { createCallSemaphore, type CallSemaphoreOptions } from '../../src/saga/run/call-semaphore.ts';
import type { OutgoingCall } from '../../src/saga/run/services/service.ts';
import { createSagaEngine, type SagaEngine } from '../../src/saga/run/run-sagas.ts';
import { sleep, systemClock } from '../../src/kernel/clock.ts';
import { migrateUp } from '../../src/platform/postgres/migrate.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { createTestWorker } from './worker.ts';

/** What a participant does with a call; `done` with the step's name by default. */
export type Participant = (call: OutgoingCall) => Answer | Promise<Answer> | undefined;

export const done = (output: unknown = null): Answer => ({ class: 'done', output });
export const refused = (detail = 'no'): Answer => failure('refused', detail);
export const unknownEnd = (detail = 'no answer'): Answer => failure('unknown', detail);

function failure(kind: 'refused' | 'defect' | 'unknown', detail: string): Answer {
  return { class: kind, detail, isTimeout: kind === 'unknown', isUnsent: false };
}

export function stepOf(name: string, more: Partial<Step> = {}): Step {
  return {
    name,
    service: 'shop',
    method: `POST /${name}`,
    undo: { kind: 'call', method: `POST /undo-${name}` },
    isPivot: false,
    timeoutMs: 1000,
    retry: { maxAttempts: 3, backoff: 'fixed', initialIntervalMs: 5 },
    input: null,
    undoInput: null,
    ...more,
  };
}

export async function openSagaScene(): Promise<SagaScene> {
  const database = await createTestDatabase();
  await migrateUp(database.db, [sagaMigrations]);
  return createScene(database);
}

export type SagaScene = ReturnType<typeof createScene>;

export type StoredSaga = Readonly<{
  status: string;
  current_step: number;
  compensation: string;
  needs_attention: boolean;
  error_message: string | null;
  step_outputs: Readonly<Record<string, unknown>>;
  lease_owner: string | null;
}>;

export type TestEngine = SagaEngine & Readonly<{ stale: () => number }>;

export type TestEngineOptions = Readonly<{
  leaseMs?: number;
  services?: readonly string[];
  calls?: CallSemaphoreOptions;
}>;

function createScene(database: TestDatabase) {
  const { db } = database;
  const calls: string[] = [];
  const engines: SagaEngine[] = [];
  const until = (id: string, isThere: (saga: StoredSaga) => boolean) => waitUntil(db, id, isThere);
  return {
    database,
    db,
    calls,
    newEngine(participant: Participant = () => undefined, options: TestEngineOptions = {}): TestEngine {
      const engine = createTestEngine(db, { owner: `engine-${engines.length}`, calls, participant, options });
      engines.push(engine);
      return engine;
    },
    async start(workflow: Workflow, payload: unknown = { sku: 'shoe' }): Promise<string> {
      await storeWorkflow(db, workflow, { isFromFile: false });
      const [row] = await db.query<{ saga_id: string; outcome: string }>(sql`
        SELECT saga_id, outcome FROM saga.start_saga(${workflow.name}, ${JSON.stringify(payload)}::jsonb)`);
      assert.equal(row?.outcome, 'started');
      return row.saga_id;
    },
    find: (id: string) => findStored(db, id),
    until,
    ends: (id: string, status: string) =>
      until(id, (saga) => saga.status === status && saga.lease_owner === null),
    /** The SQL of an engine that does not run. */
    engineSql: () =>
      engineSql({
        db,
        worker: createTestWorker(db, 'reaper'),
        time: createDatabaseClock(systemClock),
        addEvents: null,
      }),
    async drop() {
      await Promise.all(engines.map((engine) => engine.stop(AbortSignal.timeout(500))));
      await database.drop();
    },
  };
}

type EngineParts = Readonly<{
  owner: string;
  /** Gets the steps that are called. */
  calls: string[];
  participant: Participant;
  options: TestEngineOptions;
}>;

function createTestEngine(db: Database, { owner, calls, participant, options }: EngineParts): TestEngine {
  const { leaseMs = 15_000, services = ['shop'] } = options;
  const worker = createTestWorker(db, owner);
  const time = createDatabaseClock(systemClock);
  const limits = options.calls ?? { maxInFlight: 100, maxInFlightTo: () => 50, maxWaiting: 50 };
  const engine = createSagaEngine(
    {
      ...engineSql({ db, worker, time, addEvents: null }),
      clock: systemClock,
      calls: createCallSemaphore(limits),
      async send(call) {
        calls.push(`${call.call.op === 'EXECUTE' ? '' : 'undo '}${call.stepName}`);
        return (await participant(call)) ?? done({ from: call.stepName });
      },
      serviceOf: (name) => (services.includes(name) ? { isIdempotent: true } : undefined),
      now: time.now,
      random: () => 0.5,
      onSettled: () => {},
      waitForWork: (ms, signal) => sleep(Math.min(ms, 10), signal),
      onError: () => {},
    },
    { maxLeased: 200, leaseMs, pollMs: 10 },
  );
  return { ...engine, stale: () => worker.stale.count };
}

async function findStored(db: Database, id: string): Promise<StoredSaga> {
  const [row] = await db.query<StoredSaga>(sql`
    SELECT status, current_step, compensation, needs_attention, error_message, step_outputs, lease_owner
    FROM saga.saga_states WHERE id = ${id}`);
  return row ?? assert.fail(`no saga ${id}`);
}

async function waitUntil(
  db: Database,
  id: string,
  isThere: (saga: StoredSaga) => boolean,
): Promise<StoredSaga> {
  for (const deadline = performance.now() + 30_000; ;) {
    const saga = await findStored(db, id);
    if (isThere(saga)) return saga;
    assert.ok(performance.now() < deadline, `still ${JSON.stringify(saga)}`);
    await wait(5);
  }
}
