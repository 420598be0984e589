import assert from 'node:assert/strict';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from './eventually.ts';
import { startParticipant, type Participant } from './saga-participant.ts';
import { startTestSystem, type TestSystem, type TestSystemOptions } from './start-system.ts';

/** The whole system with one participant, the service `shop`, which is a real HTTP server. */
export type SagaSystem = Readonly<{
  system: TestSystem;
  shop: Participant;
  /** Registers a workflow; its name. */
  register(steps: readonly Fields[], more?: Fields): Promise<string>;
  /** Starts a saga over the API; its id. */
  start(workflow: string, more?: Fields): Promise<string>;
  /** Of these steps, in a workflow of their own. */
  startOf(steps: readonly Fields[], more?: Fields): Promise<string>;
  told(sagaId: string): Promise<ToldSaga>;
  /** Resolves when the saga is like this. */
  until(sagaId: string, isThere: (saga: PresentedSaga) => boolean): Promise<ToldSaga>;
  becomes(sagaId: string, status: string): Promise<ToldSaga>;
  waitsForPerson(sagaId: string): Promise<ToldSaga>;
  /** As if its attempts had been made an hour ago: none of them can still arrive. */
  age(sagaId: string): Promise<void>;
  drop(): Promise<void>;
}>;

type Fields = Readonly<Record<string, unknown>>;

export type PresentedSaga = Readonly<{
  saga_id: string;
  workflow_name: string;
  current_step: number;
  status: string;
  payload: unknown;
  error_message: string | null;
  compensation: string;
  needs_attention: boolean;
  deadline_at: string | null;
  definition_hash: string | null;
  stuck?: Readonly<{ step: string; action: string; reason: string }>;
  waiting_for?: Readonly<{ service: string; since: string }>;
}>;

export type PresentedStep = Readonly<{
  step_index: number;
  step_name: string;
  action: string;
  status: string | null;
  request_payload: unknown;
  response_payload: unknown;
  error_message: string | null;
  attempt: number;
  actor?: string;
  reason?: string;
}>;

export type ToldSaga = Readonly<{ saga: PresentedSaga; step_logs: readonly PresentedStep[] }>;

export const root = '/api/v1/sagas';
export const workflowRoot = '/api/v1/workflows';

/** A step of the shop with an undo and waits of milliseconds, so that a test sees a whole life of a saga. */
export function step(name: string, more: Fields = {}): Fields {
  return {
    name,
    service: 'shop',
    method: `POST /${name}`,
    compensate: `POST /undo-${name}`,
    timeout_secs: 10,
    retry: { max_attempts: 2, backoff: 'fixed', initial_interval_ms: 5 },
    ...more,
  };
}

/** A step that cannot be turned back from has no undo. */
export function stepWithoutUndo(name: string, more: Fields = {}): Fields {
  const { compensate: _undo, ...rest } = step(name, more);
  return rest;
}

let made = 0;

export async function startSagaSystem(
  options: TestSystemOptions & Readonly<{ services?: Readonly<Record<string, Fields>> }> = {},
): Promise<SagaSystem> {
  const shop = await startParticipant();
  const system = await startTestSystem({
    ...options,
    env: {
      SERVICES: JSON.stringify({ shop: { type: 'http', base_url: shop.url }, ...options.services }),
      SAGA_WORKFLOW_DIR: '/nonexistent',
      ...options.env,
    },
  });
  const { api, db } = system;

  const register: SagaSystem['register'] = async (steps, more = {}) => {
    made += 1;
    const workflow = { name: `order-${made}`, steps, ...more };
    const answer = await api.post<{ name: string }>(workflowRoot, {
      workflow_yaml: JSON.stringify(workflow),
    });
    assert.equal(answer.status, 201, answer.text);
    return answer.body.name;
  };
  const start: SagaSystem['start'] = async (workflow, more = {}) => {
    const answer = await api.post<{ saga_id: string }>(root, {
      workflow_name: workflow,
      payload: { sku: 'shoe' },
      ...more,
    });
    assert.equal(answer.status, 201, answer.text);
    return answer.body.saga_id;
  };
  const told: SagaSystem['told'] = async (sagaId) => {
    const answer = await api.get<ToldSaga>(`${root}/${sagaId}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const until: SagaSystem['until'] = (sagaId, isThere) =>
    eventually(async () => {
      const saga = await told(sagaId);
      assert.ok(isThere(saga.saga), JSON.stringify(saga));
      return saga;
    });
  return {
    system,
    shop,
    register,
    start,
    startOf: async (steps, more = {}) => start(await register(steps, more)),
    told,
    until,
    becomes: (sagaId, status) => until(sagaId, (saga) => saga.status === status),
    waitsForPerson: (sagaId) => until(sagaId, (saga) => saga.needs_attention),
    async age(sagaId) {
      await db.query(sql`
        UPDATE saga.saga_step_logs SET started_at = started_at - interval '1 hour' WHERE saga_id = ${sagaId}`);
    },
    async drop() {
      await system.drop();
      await shop.stop();
    },
  };
}
