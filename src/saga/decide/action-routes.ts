import { addActionRoute, type By } from '../../platform/http/action-route.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { StepDecision } from '../domain/advance-by-operator.ts';
import { MAX_OUTPUT_BYTES } from '../domain/step-output.ts';
import { readSagaId, sagaScope } from '../read-saga-id.ts';
import { invalidInput } from '../saga-errors.ts';
import { SagaParams } from '../schemas.ts';
import { abortSaga, type AbortRequest } from './abort-saga.ts';
import { actOnStep } from './act-on-step.ts';
import {
  AbortedSchema,
  ActedSchema,
  OptionalReasonBody,
  ReasonBody,
  ResolveBody,
  StepParams,
} from './decide-schemas.ts';
import type { DecideDeps } from './locked-saga.ts';

export type ActionRouteDeps = DecideDeps & Readonly<{ log: Logger }>;

const root = '/api/v1/sagas/:saga_id';
const noReason = 'no reason given';

type Texts = Readonly<{ summary: string; description: string }>;

/** What operators do with sagas and their stuck steps. */
export function addActionRoutes(app: HttpApp, deps: ActionRouteDeps): void {
  addAbortRoute('cancel', {
    summary: 'Cancel a saga',
    description: 'Undoes everything; the saga ends as CANCELLED. Answers as soon as the request is stored.',
  });
  addAbortRoute('compensate', {
    summary: 'Compensate a saga',
    description: 'Undoes everything; the saga ends as FAILED. Answers as soon as the request is stored.',
  });
  addPlainRoute('retry', {
    summary: 'Retry a stuck step',
    description: 'The step gets a new budget of attempts.',
  });
  addPlainRoute('skip', {
    summary: 'Skip a stuck step',
    description: 'The saga continues without it. Refused if a later step needs its output.',
  });
  addResolveRoute(app, deps);

  function addAbortRoute(kind: AbortRequest['kind'], texts: Texts): void {
    addActionRoute(app, {
      path: `${root}/${kind}`,
      access: { permission: `saga:sagas:${kind}`, scope: sagaScope(deps.db) },
      operationId: `${kind}Saga`,
      ...texts,
      errors: [404, 409],
      params: SagaParams,
      body: OptionalReasonBody,
      answer: AbortedSchema,
      async act({ params, by: { actor, reason, act } }) {
        const sagaId = readSagaId(params.saga_id);
        const { status, message } = await abortSaga(deps, sagaId, {
          kind,
          by: { actor, reason: reason ?? noReason },
          act,
        });
        return { success: true, saga_id: sagaId, status, message };
      },
    });
  }

  function addPlainRoute(kind: 'retry' | 'skip', texts: Texts): void {
    addActionRoute(app, {
      path: `${root}/steps/:step/${kind}`,
      access: { permission: 'saga:sagas:repair', scope: sagaScope(deps.db) },
      operationId: `${kind}Step`,
      ...texts,
      errors: [404, 409, 422],
      params: StepParams,
      body: ReasonBody,
      answer: ActedSchema,
      act: ({ params, body: { reason }, by }) =>
        actFor(deps, params, by, { kind, by: { actor: by.actor, reason } }),
    });
  }
}

function addResolveRoute(app: HttpApp, deps: ActionRouteDeps): void {
  addActionRoute(app, {
    path: `${root}/steps/:step/resolve`,
    access: { permission: 'saga:sagas:repair', scope: sagaScope(deps.db) },
    operationId: 'resolveStep',
    summary: 'Record the outcome of a stuck step',
    description:
      'For a step whose outcome somebody has found out. `output` stands for the answer of the service and needs the outcome `done`.',
    errors: [404, 409, 422],
    params: StepParams,
    body: ResolveBody,
    answer: ActedSchema,
    isExact: true,
    async act({ params, body: { reason, outcome, output }, by }) {
      checkOutput(outcome, output);
      return actFor(deps, params, by, {
        kind: 'resolve',
        by: { actor: by.actor, reason },
        outcome,
        output,
      });
    },
  });
}

/** It is stored like a response of the step's service. */
function checkOutput(outcome: string | undefined, output: unknown): void {
  if (output === undefined) return;
  if (outcome !== 'done') throw invalidInput('output', 'conflict', 'requires the outcome done');
  if (Buffer.byteLength(JSON.stringify(output)) > MAX_OUTPUT_BYTES)
    throw invalidInput('output', 'max_bytes', `must not be larger than ${MAX_OUTPUT_BYTES} bytes`);
}

async function actFor(
  deps: ActionRouteDeps,
  params: Readonly<{ saga_id: string; step: string }>,
  { act }: By,
  decision: StepDecision,
): Promise<object> {
  const sagaId = readSagaId(params.saga_id);
  const { status, message } = await actOnStep(deps, sagaId, { ...decision, stepName: params.step, act });
  return { success: true, saga_id: sagaId, step: params.step, status, message };
}
