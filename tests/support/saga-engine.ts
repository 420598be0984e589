import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { Answer } from '../../src/saga/domain/judge-answer.ts';
import type { Step, Workflow } from '../../src/saga/domain/workflow.ts';
import { sagaMigrations } from '../../src/saga/index.ts';
import { createDatabaseClock } from '../../src/saga/infra/database-clock.ts';
import { createPostgresSagaStore } from '../../src/saga/infra/postgres-saga-store.ts';
import { createPostgresWorkflows } from '../../src/saga/infra/postgres-workflows.ts';
import { createCallSlots, type CallSlotOptions } from '../../src/saga/usecase/call-slots.ts';
import type { OutgoingCall } from '../../src/saga/usecase/ports.ts';
import { createSagaEngine, type SagaEngine } from '../../src/saga/usecase/run-sagas.ts';
import { createSettleQueue } from '../../src/saga/usecase/settle-queue.ts';
import { sleep, systemClock } from '../../src/kernel/clock.ts';
import { migrateUp } from '../../src/platform/postgres/migrate.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
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
  needs_person: boolean;
  error_message: string | null;
  step_outputs: Readonly<Record<string, unknown>>;
  lease_owner: string | null;
}>;

function createScene(database: TestDatabase) {
  const { db } = database;
  const calls: string[] = [];
  const engines: SagaEngine[] = [];

  const newEngine = (
    participant: Participant = () => undefined,
    {
      leaseMs = 15_000,
      services = ['shop'],
      slots = { most: 100, mostTo: () => 50, mostWaiting: 50 },
    }: Readonly<{ leaseMs?: number; services?: readonly string[]; slots?: CallSlotOptions }> = {},
  ): SagaEngine & Readonly<{ stale: () => number }> => {
    const worker = createTestWorker(db, `engine-${engines.length}`);
    const time = createDatabaseClock(systemClock);
    const store = createPostgresSagaStore({ db, worker, time, addEvents: null });
    const engine = createSagaEngine(
      {
        store,
        clock: systemClock,
        queue: createSettleQueue(store),
        slots: createCallSlots(slots),
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
      { mostHeld: 200, leaseMs, pollMs: 10 },
    );
    engines.push(engine);
    return { ...engine, stale: () => worker.stale.count };
  };

  const start = async (workflow: Workflow, payload: unknown = { sku: 'shoe' }): Promise<string> => {
    await createPostgresWorkflows(db).register(workflow, { isFromFile: false });
    const [row] = await db.query<{ saga_id: string; outcome: string }>(sql`
      SELECT saga_id, outcome FROM saga.start_saga(${workflow.name}, ${JSON.stringify(payload)}::jsonb)`);
    assert.equal(row?.outcome, 'started');
    return row.saga_id;
  };

  const find = async (id: string): Promise<StoredSaga> => {
    const [row] = await db.query<StoredSaga>(sql`
      SELECT status, current_step, compensation, needs_person, error_message, step_outputs, lease_owner
      FROM saga.saga_states WHERE id = ${id}`);
    return row ?? assert.fail(`no saga ${id}`);
  };

  const until = async (id: string, isThere: (saga: StoredSaga) => boolean): Promise<StoredSaga> => {
    for (const deadline = performance.now() + 30_000; ;) {
      const saga = await find(id);
      if (isThere(saga)) return saga;
      assert.ok(performance.now() < deadline, `still ${JSON.stringify(saga)}`);
      await wait(5);
    }
  };

  return {
    database,
    db,
    calls,
    newEngine,
    start,
    find,
    until,
    ends: (id: string, status: string) =>
      until(id, (saga) => saga.status === status && saga.lease_owner === null),
    store: () =>
      createPostgresSagaStore({
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
