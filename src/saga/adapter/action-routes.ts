import { actorOf } from '../../platform/http/actor.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { MAX_OUTPUT_BYTES } from '../domain/step-output.ts';
import { abortSaga, type AbortDeps, type AbortWish } from '../usecase/abort-saga.ts';
import { actOnStep, type ActDeps, type StepAct } from '../usecase/act-on-step.ts';
import { invalidInput } from './invalid-input.ts';
import { readSagaId } from './read-request.ts';
import * as schemas from './schemas.ts';

export type ActionRouteDeps = AbortDeps & ActDeps;

const root = '/api/v1/sagas/:saga_id';
const noReason = 'no reason given';

/** What a person decides about sagas, and about the steps at which they are stuck. */
export function addActionRoutes(app: HttpApp, deps: ActionRouteDeps): void {
  addAbortRoute('cancel', 'Undo everything and end as CANCELLED; answers as soon as the wish is stored');
  addAbortRoute('compensate', 'Undo everything and end as FAILED; answers as soon as the wish is stored');
  addPlainRoute('retry', 'Try the step at which the saga is stuck again, with a new budget');
  addPlainRoute('skip', 'Go on without the step at which the saga is stuck');
  addResolveRoute(app, deps);

  function addAbortRoute(kind: AbortWish['kind'], summary: string): void {
    app.post(
      `${root}/${kind}`,
      {
        schema: {
          summary,
          params: schemas.SagaParams,
          body: schemas.OptionalReasonBody,
          response: { 200: schemas.AbortedSchema },
        },
      },
      async (request, reply) => {
        const sagaId = readSagaId(request.params.saga_id);
        const by = { actor: actorOf(request), reason: request.body?.reason ?? noReason };
        const { status, message } = await abortSaga(deps, sagaId, { kind, by });
        return reply.send({ success: true, saga_id: sagaId, status, message });
      },
    );
  }

  function addPlainRoute(kind: 'retry' | 'skip', summary: string): void {
    app.post(
      `${root}/steps/:step/${kind}`,
      {
        schema: {
          summary,
          params: schemas.StepParams,
          body: schemas.ReasonBody,
          response: { 200: schemas.ActedSchema },
        },
      },
      async (request, reply) => {
        const by = { actor: actorOf(request), reason: request.body.reason };
        return reply.send(await actFor(deps, request.params, { kind, by }));
      },
    );
  }
}

function addResolveRoute(app: HttpApp, deps: ActDeps): void {
  app.post(
    `${root}/steps/:step/resolve`,
    {
      config: { exactJson: true },
      schema: {
        summary: 'Say what has become of the step at which the saga is stuck',
        params: schemas.StepParams,
        body: schemas.ResolveBody,
        response: { 200: schemas.ActedSchema },
      },
    },
    async (request, reply) => {
      const { reason, outcome, output } = request.body;
      const by = { actor: actorOf(request), reason };
      checkOutput(outcome, output);
      return reply.send(await actFor(deps, request.params, { kind: 'resolve', by, outcome, output }));
    },
  );
}

/** It is kept as an answer of the step's service would be. */
function checkOutput(outcome: string | undefined, output: unknown): void {
  if (output === undefined) return;
  if (outcome !== 'done') throw invalidInput('output', 'conflict', 'belongs to the outcome done');
  if (Buffer.byteLength(JSON.stringify(output)) > MAX_OUTPUT_BYTES)
    throw invalidInput('output', 'max_bytes', `must not be larger than ${MAX_OUTPUT_BYTES} bytes`);
}

type Unnamed<Act> = Act extends StepAct ? Omit<Act, 'stepName'> : never;

async function actFor(
  deps: ActDeps,
  params: Readonly<{ saga_id: string; step: string }>,
  act: Unnamed<StepAct>,
): Promise<object> {
  const sagaId = readSagaId(params.saga_id);
  const { status, message } = await actOnStep(deps, sagaId, { ...act, stepName: params.step });
  return { success: true, saga_id: sagaId, step: params.step, status, message };
}
