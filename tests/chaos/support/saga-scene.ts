import assert from 'node:assert/strict';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import type { Status } from '../../../src/saga/domain/saga-state.ts';
import type { Step, Workflow } from '../../../src/saga/domain/workflow/workflow.ts';
import { storeWorkflow } from '../../../src/saga/define/workflows-table.ts';
import { storeAbort, type AbortRequest, type AbortResult } from '../../../src/saga/decide/abort-saga.ts';
import { settleStep, type StepRequest, type StepResult } from '../../../src/saga/decide/act-on-step.ts';
import { createTestDatabase } from '../../support/database.ts';
import type { ParticipantCall, ParticipantScript } from '../../support/participant/script.ts';
import { spawnParticipant, type SpawnedParticipant } from '../../support/participant/spawn-participant.ts';
import type { FaultPlan } from './faults.ts';
import { findSagaBreaches } from './saga-breaches.ts';
import { keepSagaHistory } from './saga-history.ts';
import { startReplica, type Replica } from './start-replica.ts';
import { until } from './until.ts';
import { testAct } from '../../support/acts.ts';

export type SagaView = Readonly<{
  id: string;
  status: Status;
  currentStep: number;
  compensation: string;
  needsAttention: boolean;
  error: string | null;
  owner: string | null;
  epoch: bigint;
  hash: string;
}>;

/** A participant, a database, and the replicas that run sagas from the one at the other. */
export type SagaScene = Readonly<{
  db: Database;
  participant: SpawnedParticipant;
  start(plan?: FaultPlan, env?: Readonly<Record<string, string>>): Promise<Replica>;
  /** Makes it what new sagas of its name begin with. */
  register(workflow: Workflow): Promise<string>;
  /** A saga for each tag, in one transaction; their ids. */
  begin(workflow: Workflow, tags: readonly string[]): Promise<readonly string[]>;
  beginOne(workflow: Workflow, tag?: string): Promise<string>;
  all(): Promise<readonly SagaView[]>;
  find(id: string): Promise<SagaView>;
  becomes(id: string, what: string, isSo: (saga: SagaView) => boolean): Promise<SagaView>;
  ends(id: string, status: Status): Promise<SagaView>;
  /** Its log, a line for each attempt: `reserve 1 SUCCESS`, `undo reserve 2 TIMEOUT`. */
  story(id: string): Promise<readonly string[]>;
  /** The calls of a saga as they arrived: `reserve`, `undo reserve`. */
  calls(id: string): Promise<readonly string[]>;
  /** Resolves when the call has arrived so often. */
  arrives(id: string, call: string, times?: number): Promise<unknown>;
  abort(id: string, kind?: AbortRequest['kind']): Promise<AbortResult>;
  /** What a person does with the step at which it is stuck. */
  act(id: string, kind: StepRequest['kind'], stepName: string): Promise<StepResult>;
  /** Resolves when every saga has ended or waits for a person. */
  atRest(withinMs?: number): Promise<void>;
  /** Fails with everything that must hold at rest and does not; see `findSagaBreaches`. */
  check(): Promise<readonly SagaView[]>;
  close(): Promise<void>;
}>;

export type SagaSceneOptions = Readonly<{
  script?: ParticipantScript;
  env?: Readonly<Record<string, string>>;
  /** The database of a server that the test has started itself. */
  database?: Readonly<{ url: string; db: Database }>;
}>;

const toldBreaches = 20;

export const sagaEnv = { KAFKA_ENABLED: 'false', SAGA_LEASE_SECS: '3' } as const;

/** `shop` has the saga guard, `careless` does not, and `gone` is a service that nobody answers for. */
export function servicesOf(
  { guardedUrl, bareUrl }: SpawnedParticipant,
  goneUrl = 'http://127.0.0.1:9',
): Readonly<Record<string, string>> {
  const http = { type: 'http', max_in_flight: 60 } as const;
  return {
    SERVICES: JSON.stringify({
      shop: { ...http, base_url: guardedUrl },
      careless: { ...http, base_url: bareUrl, idempotent: false },
      gone: { ...http, base_url: goneUrl },
    }),
  };
}

export async function openSagaScene(options: SagaSceneOptions = {}): Promise<SagaScene> {
  const { script = {}, env = {}, database } = options;
  const own = database === undefined ? await createTestDatabase() : null;
  const { url, db } = database ?? own ?? assert.fail();
  await keepSagaHistory(db);
  const participant = await spawnParticipant({ databaseUrl: url, script });
  const sceneEnv = { ...sagaEnv, DATABASE_URL: url, ...servicesOf(participant), ...env };
  const replicas: Replica[] = [];
  const logs = (): string => replicas.map((replica) => replica.log()).join('\n--\n');
  return {
    db,
    participant,
    ...watchSagas(db, participant, logs),
    ...operateSagas(db),
    ...beginAndCheck(db, participant),
    async start(plan, more = {}) {
      const replica = await startReplica({ ...sceneEnv, ...more }, plan);
      replicas.push(replica);
      return replica;
    },
    async close() {
      await Promise.all(replicas.map((replica) => replica.kill()));
      await participant.stop();
      await own?.drop();
    },
  };
}

type Watched = Pick<
  SagaScene,
  'all' | 'find' | 'becomes' | 'ends' | 'story' | 'calls' | 'arrives' | 'atRest'
>;

function watchSagas(db: Database, participant: SpawnedParticipant, logs: () => string): Watched {
  const all: Watched['all'] = () => readSagas(db, null);
  const find: Watched['find'] = async (id) => (await readSagas(db, id))[0] ?? assert.fail(`no saga ${id}`);
  const calls: Watched['calls'] = async (id) =>
    (await participant.arrivals()).filter(({ sagaId }) => sagaId === id).map(callName);
  const becomes: Watched['becomes'] = (id, what, isSo) =>
    until(
      `the saga ${what}`,
      async () => {
        const saga = await find(id);
        return isSo(saga) && saga;
      },
      { explain: logs },
    );
  return {
    all,
    find,
    calls,
    becomes,
    ends: (id, status) => becomes(id, `is ${status}`, (saga) => saga.status === status),
    story: (id) => readStory(db, id),
    arrives: (id, call, times = 1) =>
      until(
        `${call} has arrived ${times} times`,
        async () => (await calls(id)).filter((each) => each === call).length >= times || null,
        { explain: logs },
      ),
    async atRest(withinMs = 120_000) {
      let left: readonly SagaView[] = [];
      await until(
        'every saga has ended or needs attention',
        async () => {
          left = (await all()).filter((saga) => !isAtRest(saga));
          return left.length === 0 || null;
        },
        {
          withinMs,
          explain: () => `${left.length} have not: ${JSON.stringify(left[0], bigints)}\n${logs()}`,
        },
      );
    },
  };
}

function operateSagas(db: Database): Pick<SagaScene, 'abort' | 'act'> {
  const deps = { db, serviceOf: () => ({ isIdempotent: true }), addEvents: null };
  const by = { actor: 'ops', reason: 'a test' };
  return {
    abort: (id, kind = 'cancel') => storeAbort(db, id, { kind, by, act: testAct('saga:sagas:cancel') }),
    act: (id, kind, stepName) =>
      settleStep(deps, id, { kind, stepName, by }, { act: testAct('saga:sagas:repair') }),
  };
}

function beginAndCheck(
  db: Database,
  participant: SpawnedParticipant,
): Pick<SagaScene, 'register' | 'begin' | 'beginOne' | 'check'> {
  const begun: string[] = [];
  const register: SagaScene['register'] = (workflow) => storeWorkflow(db, workflow, { isFromFile: false });
  const begin: SagaScene['begin'] = async (workflow, tags) => {
    await register(workflow);
    const ids = await beginSagas(db, workflow.name, tags);
    begun.push(...ids);
    return ids;
  };
  return {
    register,
    begin,
    beginOne: async (workflow, tag = '') => (await begin(workflow, [tag]))[0] ?? assert.fail(),
    async check() {
      const effects = await participant.guardedEffects();
      const breaches = await findSagaBreaches(db, { begun, effects, guarded: ['shop', 'gone'] });
      assert.deepEqual(breaches.slice(0, toldBreaches), []);
      return readSagas(db, null);
    },
  };
}

export function shopStep(name: string, more: Partial<Step> = {}): Step {
  return {
    name,
    service: 'shop',
    method: 'POST /do',
    undo: { kind: 'call', method: 'POST /undo' },
    isPivot: false,
    timeoutMs: 15_000,
    retry: { maxAttempts: 3, backoff: 'fixed', initialIntervalMs: 30 },
    input: null,
    undoInput: null,
    ...more,
  };
}

export function workflowOf(name: string, ...steps: readonly Step[]): Workflow {
  return { name, deadlineMs: null, steps };
}

/** Three steps that can all be undone. */
export const placeOrder: Workflow = workflowOf(
  'place-order',
  shopStep('reserve'),
  shopStep('charge'),
  shopStep('ship'),
);

export const inOrder = ['reserve', 'charge', 'ship'] as const;

const isAtRest = ({ status, needsAttention }: SagaView): boolean =>
  needsAttention || status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELLED';

const bigints = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? String(value) : value;

function callName({ step, op }: ParticipantCall): string {
  return op === 'action' ? step : `undo ${step}`;
}

async function readSagas(db: Database, id: string | null): Promise<readonly SagaView[]> {
  return db.query<SagaView>(sql`
    SELECT id, status, current_step AS "currentStep", compensation, needs_attention AS "needsAttention",
           error_message AS error, lease_owner AS owner, lease_epoch AS epoch, definition_hash AS hash
    FROM saga.saga_states WHERE ${id}::uuid IS NULL OR id = ${id}::uuid ORDER BY created_at, id`);
}

async function readStory(db: Database, id: string): Promise<readonly string[]> {
  const rows = await db.query<{ line: string }>(sql`
    SELECT concat(CASE action WHEN 'COMPENSATE' THEN 'undo ' END, step_name, ' ', attempt, ' ',
                  COALESCE(status, 'open')) AS line
    FROM saga.saga_step_logs WHERE saga_id = ${id}
    ORDER BY action DESC, CASE action WHEN 'EXECUTE' THEN step_index ELSE -step_index END, attempt`);
  return rows.map(({ line }) => line);
}

async function beginSagas(db: Database, name: string, tags: readonly string[]): Promise<readonly string[]> {
  const rows = await db.query<{ saga_id: string; outcome: string }>(sql`
    SELECT started.saga_id, started.outcome
    FROM unnest(${tags}::text[]) WITH ORDINALITY AS t (tag, no)
    CROSS JOIN LATERAL saga.start_saga(${name}, jsonb_build_object('tag', t.tag)) AS started
    ORDER BY t.no`);
  for (const { outcome } of rows) assert.equal(outcome, 'started');
  return rows.map(({ saga_id }) => saga_id);
}

export const tagsFrom = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}-${String(i).padStart(6, '0')}`);

export const staleWritesOf = (replica: Replica): Promise<number> =>
  replica.metric('redrive_stale_writes_total', 'slice="saga"');

export async function untilStale(replica: Replica, count: number): Promise<void> {
  await until(
    `${count} stale writes are counted`,
    async () => (await staleWritesOf(replica)) >= count || null,
    {
      explain: replica.log,
    },
  );
  assert.equal(await staleWritesOf(replica), count);
}
