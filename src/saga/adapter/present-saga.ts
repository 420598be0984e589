import { formatTimestamp } from '../../kernel/timestamp.ts';
import { rawJson, type RawJson } from '../../platform/http/raw-json.ts';
import { toStored } from '../domain/workflow-hash.ts';
import type { LoggedStep, Saga, ToldSaga } from '../usecase/reading-ports.ts';
import type { RegisteredWorkflow } from '../usecase/workflow-ports.ts';

/** The slice's objects as JSON shows them. */

type Json = Readonly<Record<string, unknown>>;

/** PostgreSQL also has instants that JavaScript has not: the driver gives a number for `infinity`. */
function at(instant: Date | number | null): string | null {
  const isInstant = instant instanceof Date && !Number.isNaN(instant.getTime());
  return isInstant ? formatTimestamp(instant) : null;
}

const raw = (text: string | null): RawJson | null => (text === null ? null : rawJson(text));

export function presentSaga(saga: Saga): Json {
  const { stuck } = saga;
  return {
    saga_id: saga.sagaId,
    workflow_name: saga.workflowName,
    current_step: saga.currentStep,
    status: saga.status,
    payload: raw(saga.payloadText),
    correlation_id: saga.correlationId,
    initiated_by: saga.initiatedBy,
    error_message: saga.errorMessage,
    created_at: at(saga.createdAt),
    updated_at: at(saga.updatedAt),
    compensation: saga.compensation,
    needs_person: saga.needsPerson,
    deadline_at: at(saga.deadlineAt),
    definition_hash: saga.definitionHash,
    ...(stuck === null ? {} : { stuck: { step: stuck.stepName, action: stuck.op, reason: stuck.reason } }),
    ...(saga.isPayloadOmitted ? { payload_omitted: true } : {}),
  };
}

export function presentToldSaga({ saga, steps }: ToldSaga): Json {
  return { saga: presentSaga(saga), step_logs: steps.map((step) => presentStep(saga.sagaId, step)) };
}

function presentStep(sagaId: string, step: LoggedStep): Json {
  return {
    id: step.id,
    saga_id: sagaId,
    step_index: step.stepIndex,
    step_name: step.stepName,
    action: step.action,
    status: step.status,
    request_payload: raw(step.requestText),
    response_payload: raw(step.responseText),
    error_message: step.errorMessage,
    started_at: at(step.startedAt),
    completed_at: at(step.completedAt),
    updated_at: at(step.updatedAt),
    attempt: step.attempt,
    ...(step.actor === null ? {} : { actor: step.actor, reason: step.reason }),
  };
}

export function presentRegistered({ hash, workflow: { name, steps } }: RegisteredWorkflow): Json {
  return { name, step_count: steps.length, hash };
}

export function presentWorkflow({ hash, workflow: { name, steps } }: RegisteredWorkflow): Json {
  return { name, step_count: steps.length, step_names: steps.map((step) => step.name), hash };
}

export function presentDefinedWorkflow(registered: RegisteredWorkflow): Json {
  return { ...presentWorkflow(registered), definition: toStored(registered.workflow) };
}
