import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Op } from '../domain/saga-state.ts';
import { stepStateOf, type StepState, type TriedOp } from '../domain/step-states.ts';
import { compensateOf, fromStored } from '../domain/workflow/workflow-hash.ts';
import type { Step } from '../domain/workflow/workflow.ts';
import type { Json, Saga } from './saga-view.ts';

/** A step of a saga's definition, and its outcome so far. */
export type SagaStep = Readonly<{ step: Step; state: StepState }>;

/** Of sagas, by their ids; those without a definition are missing. */
export type StepsOfSagas = ReadonlyMap<string, readonly SagaStep[]>;

/** Two statements, however many sagas there are. */
export async function readSteps(db: Queryable, sagas: readonly Saga[]): Promise<StepsOfSagas> {
  if (sagas.length === 0) return new Map();
  const definitions = await selectDefinitions(db, sagas);
  const tried = await selectTried(db, sagas);
  return new Map(
    sagas.flatMap((saga) => {
      const steps =
        definitions.get(saga.definitionHash ?? '') ?? definitions.get(`name ${saga.workflowName}`);
      return steps === undefined ? [] : [[saga.sagaId, stepsOf(saga, steps, tried)] as const];
    }),
  );
}

function stepsOf(
  saga: Saga,
  steps: readonly Step[],
  tried: ReadonlyMap<string, TriedOp>,
): readonly SagaStep[] {
  const isForward = saga.compensation === 'none' && saga.status !== 'FAILED' && saga.status !== 'CANCELLED';
  return steps.map((step, index) => {
    const facts = {
      action: tried.get(`${saga.sagaId} ${index} EXECUTE`),
      undo: tried.get(`${saga.sagaId} ${index} COMPENSATE`),
      stuck: saga.stuck?.step === index ? saga.stuck.op : null,
    };
    return { step, state: stepStateOf(facts, isForward) };
  });
}

type DefinitionRow = Readonly<{ hash: string; name: string | null; definition: unknown }>;

/** By hash; the current one also by the name of its workflow, for sagas that were started without a definition. */
async function selectDefinitions(
  db: Queryable,
  sagas: readonly Saga[],
): Promise<ReadonlyMap<string, readonly Step[]>> {
  const hashes = sagas.flatMap(({ definitionHash }) => definitionHash ?? []);
  const names = sagas.flatMap(({ definitionHash, workflowName }) =>
    definitionHash === null ? [workflowName] : [],
  );
  const rows = await db.query<DefinitionRow>(sql`
    SELECT d.hash, d.definition, NULL AS name FROM saga.workflow_definitions d
    WHERE d.hash = ANY(${[...new Set(hashes)]}::text[])
    UNION ALL
    SELECT d.hash, d.definition, w.name
    FROM saga.workflows w JOIN saga.workflow_definitions d ON d.hash = w.current_hash
    WHERE w.name = ANY(${[...new Set(names)]}::text[])`);
  return new Map(
    rows.map(({ hash, name, definition }) => [
      name === null ? hash : `name ${name}`,
      fromStored(definition).steps,
    ]),
  );
}

type TriedRow = TriedOp & Readonly<{ sagaId: string; step: number; op: Op }>;

async function selectTried(db: Queryable, sagas: readonly Saga[]): Promise<ReadonlyMap<string, TriedOp>> {
  const ids = sagas.map(({ sagaId }) => sagaId);
  const columns = sql`l.saga_id, l.step_index, l.action, l.status, l.answer, l.is_unsent`;
  const rows = await db.query<TriedRow>(sql`
    SELECT l.saga_id AS "sagaId", l.step_index AS step, l.action AS op, bool_or(l.status IS NULL) AS "isOpen",
           bool_or(l.status = 'SUCCESS') IS TRUE AS "isDone", bool_or(l.status = 'SKIPPED') IS TRUE AS "isSkipped",
           bool_or(l.answer = 'unknown' AND NOT l.is_unsent) IS TRUE AS "isUnknown",
           bool_or(l.answer = 'not_done') IS TRUE AS "isNotDone"
    FROM (
      SELECT ${columns} FROM saga.saga_step_logs l WHERE l.saga_id = ANY(${ids}::uuid[])
      UNION ALL
      SELECT ${columns} FROM saga.saga_step_logs_archive l WHERE l.saga_id = ANY(${ids}::uuid[])) AS l
    GROUP BY l.saga_id, l.step_index, l.action`);
  return new Map(rows.map(({ sagaId, step, op, ...tried }) => [`${sagaId} ${step} ${op}`, tried]));
}

export function presentSteps(steps: readonly SagaStep[] | undefined): readonly Json[] | null {
  if (steps === undefined) return null;
  return steps.map(({ step, state }) => ({
    name: step.name,
    state,
    service: step.service,
    method: step.method,
    compensate: compensateOf(step.undo),
    pivot: step.isPivot,
  }));
}
