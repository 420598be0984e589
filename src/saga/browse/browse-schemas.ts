import { Type, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../../platform/http/page-schema.ts';
import { countedTotal, facetsOf } from '../../platform/http/facet-schemas.ts';
import { closed, Instant, Masked, nullable, Timestamp } from '../../platform/http/schema-parts.ts';
import { answerClasses, statuses } from '../domain/saga-state.ts';
import { stepStates } from '../domain/step-states.ts';
import { Action, Name, SagaId, StatusSchema } from '../schemas.ts';
import { facetFields } from './count-facets.ts';

const filterParameters = {
  workflow_name: Type.Optional(Name),
  status: Type.Optional(
    Type.Array(StatusSchema, {
      minItems: 1,
      maxItems: statuses.length,
      description: 'May be repeated: one of these.',
    }),
  ),
  step: Type.Optional({
    ...Name,
    description: 'The step at which it stands: the stuck one, else the first that is not done.',
  }),
  key: Type.Optional({
    ...Name,
    description: 'The `Idempotency-Key` with which it was started, while it is kept: at least 30 days.',
  }),
  correlation_id: Type.Optional(Name),
  definition_hash: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: 'Of the definition that it keeps.' }),
  ),
  waiting_for: Type.Optional({
    ...Name,
    description: 'The service with an open circuit that it waits for.',
  }),
  fingerprint: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'Of the failure that it is stuck at or undone for.',
    }),
  ),
  needs_attention: Type.Optional(Type.Boolean({ description: 'Whether it needs attention.' })),
  since: Type.Optional({ ...Instant, description: 'Started at or after it; ISO 8601 with its zone.' }),
  until: Type.Optional({ ...Instant, description: 'Started before it; ISO 8601 with its zone.' }),
};

export const SagaFilterQuery = Type.Object(filterParameters, closed);

const Fingerprint = nullable(
  Type.String({
    description: 'The same for failures with the same cause.',
    examples: ['v2:3b0e6c1f9a7d42588c1e0f6a5d9b7c34'],
  }),
);

const AsOf = {
  ...Timestamp,
  description: 'The time of the database when it was read: the answer is at least as new.',
};

const Step = Type.Object(
  {
    name: Type.String({ examples: ['reserve'] }),
    state: Type.Enum([...stepStates], {
      description:
        '`failed`: it did not happen. `in_doubt`: it may have happened, and its undo was not called yet. `undo_skipped`: there was nothing to undo, or an operator skipped the undo.',
    }),
    service: Type.String({ examples: ['inventory'] }),
    method: Type.String({ examples: ['POST /reservations'] }),
    compensate: nullable(
      Type.String({
        examples: ['POST /releases'],
        description:
          'The method that undoes it; `none` if the workflow says that there is nothing to undo, null if it says nothing.',
      }),
    ),
    pivot: Type.Boolean({ description: 'The point of no return.' }),
  },
  { title: 'SagaStep' },
);

const sagaFields = {
  saga_id: SagaId,
  workflow_name: Type.String({ examples: ['buy'] }),
  current_step: Type.Integer({ description: 'The first step that is not done, from 0.' }),
  status: StatusSchema,
  payload: Type.Unknown({
    examples: [{ sku: 'shoe', qty: 1 }],
    description: 'As stored; null if it is omitted.',
  }),
  correlation_id: nullable(Type.String()),
  initiated_by: nullable(Type.String()),
  created_by: nullable(
    Type.String({
      examples: ['key:k7Qm2xTa'],
      description: 'Who started it; null without authentication, and if it was started in SQL.',
    }),
  ),
  error_message: nullable(Type.String({ description: 'Why it is undone: the first cause.' })),
  created_at: nullable(Timestamp),
  updated_at: nullable(Timestamp),
  compensation: Type.Enum(['none', 'running', 'done', 'stuck', 'resolved']),
  needs_attention: Type.Boolean(),
  deadline_at: nullable(Timestamp),
  definition_hash: nullable(
    Type.String({
      examples: ['sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
      description: 'The definition that it started with and keeps.',
    }),
  ),
  fingerprint: Fingerprint,
  stuck: Type.Optional(
    Type.Object(
      {
        step: nullable(Type.String({ examples: ['reserve'] })),
        action: Action,
        reason: Type.String({ examples: ['timed out after 3000 ms'] }),
      },
      { description: 'Only while it needs attention: where and why.' },
    ),
  ),
  waiting_for: Type.Optional(
    Type.Object(
      { service: Type.String({ examples: ['inventory'] }), since: Timestamp },
      { description: 'Only while its next call waits for a service whose circuit is open.' },
    ),
  ),
  masked: Masked,
  payload_omitted: Type.Optional(
    Type.Literal(true, { description: 'Too large to show: over 16 KiB in lists, else over 16 MiB.' }),
  ),
  next_attempt_at: nullable({
    ...Timestamp,
    description: 'Null while a call is in flight, at the end, and while it needs attention.',
  }),
  pivot_opened: Type.Boolean({ description: 'The point of no return was passed: it can only go forward.' }),
  trace_id: nullable(
    Type.String({
      examples: ['4bf92f3577b34da6a3ce929d0e0e4736'],
      description: 'Of the request that started it.',
    }),
  ),
  abort: Type.Optional(
    Type.Object(
      {
        kind: Type.Enum(['cancel', 'compensate']),
        actor: Type.String({ examples: ['jane'] }),
        reason: Type.String({ examples: ['ordered by mistake'] }),
        at: nullable(Timestamp),
      },
      { description: 'Only if somebody asked to cancel or compensate it.' },
    ),
  ),
  steps: nullable(
    Type.Array(Step, {
      description:
        'Of the definition that it keeps; null if it was started without one and none is registered.',
    }),
  ),
};

const SagaSchema = Type.Object(sagaFields, { title: 'Saga' });

/** So that a misspelt field is refused. */
const fieldNames = Object.keys(sagaFields);

export const SagaListQuery = Type.Object(
  {
    ...filterParameters,
    fields: Type.Optional(
      Type.Array(Type.Enum(fieldNames), {
        minItems: 1,
        maxItems: fieldNames.length,
        description: 'Only these fields of each saga, and `saga_id`. May be repeated.',
      }),
    ),
    ...pageParameters,
  },
  closed,
);

export const SagaListSchema: TSchema = Type.Object({
  sagas: Type.Array(Type.Object(sagaFields, { title: 'ListedSaga' })),
  pagination: PaginationSchema,
  as_of: AsOf,
});

export const SagaFacetsSchema: TSchema = Type.Object(
  {
    ...countedTotal,
    needs_attention: Type.Integer({ minimum: 0, examples: [1] }),
    facets: facetsOf(facetFields, 'RUNNING'),
    as_of: AsOf,
  },
  { title: 'SagaFacets' },
);

export const SagaWithStepsSchema: TSchema = Type.Object(
  {
    saga: SagaSchema,
    step_logs: Type.Array(
      Type.Object(
        {
          id: Type.String({ format: 'uuid' }),
          saga_id: SagaId,
          step_index: Type.Integer(),
          step_name: Type.String({ examples: ['reserve'] }),
          action: Action,
          status: nullable(
            Type.Enum(['SUCCESS', 'FAILED', 'TIMEOUT', 'SKIPPED'], {
              description: 'Null while the attempt is open.',
            }),
          ),
          request_payload: Type.Unknown({ examples: [{ sku: 'shoe' }] }),
          response_payload: Type.Unknown({ examples: [{ id: 'r-1' }] }),
          error_message: nullable(Type.String()),
          started_at: nullable(Timestamp),
          completed_at: nullable(Timestamp),
          updated_at: nullable(Timestamp),
          attempt: Type.Integer({ examples: [1] }),
          masked: Masked,
          answer: nullable(
            Type.Enum([...answerClasses], {
              description:
                'What the attempt came to; `unknown`: it may have taken effect. Null while it is open, and if it was skipped.',
            }),
          ),
          headers: nullable(
            Type.Record(Type.String(), Type.String(), {
              examples: [{ 'saga-attempt': '1' }],
              description:
                'Sent with the request, besides those that every attempt has. Null if certainly nothing was sent.',
            }),
          ),
          payloads_omitted: Type.Optional(
            Type.Literal(true, {
              description: 'The payloads of all attempts together are too large to show.',
            }),
          ),
          fingerprint: Fingerprint,
          actor: Type.Optional(Type.String({ description: 'Only if an operator wrote or retried it.' })),
          reason: Type.Optional(
            nullable(
              Type.String({ examples: ['timed out after 3000 ms'], description: "The operator's reason." }),
            ),
          ),
        },
        { title: 'StepLog' },
      ),
      { description: 'One row per attempt, by step and then by start.' },
    ),
  },
  { title: 'SagaWithSteps' },
);

export const ServiceListSchema: TSchema = Type.Object({
  services: Type.Array(
    Type.Object(
      {
        name: Type.String({ examples: ['inventory'] }),
        type: Type.Enum(['http', 'grpc']),
        idempotent: Type.Boolean(),
        circuit: Type.Enum(['closed', 'open'], {
          description: 'Open: the service is down, and only probes are sent to it.',
        }),
        since: nullable(Timestamp),
        reason: nullable(
          Type.String({
            examples: ['timed out after 3000 ms'],
            description: 'The last failure before the circuit opened.',
          }),
        ),
        next_probe_at: nullable(Timestamp),
        waiting: Type.Integer({ description: 'How many sagas wait for it.' }),
      },
      { title: 'Service' },
    ),
  ),
});
