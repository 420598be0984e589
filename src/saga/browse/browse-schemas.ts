import { Type, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../../platform/http/page-schema.ts';
import { closed, nullable, Timestamp } from '../../platform/http/schema-parts.ts';
import { Action, Name, SagaId, StatusSchema } from '../schemas.ts';

export const SagaListQuery = Type.Object(
  {
    workflow_name: Type.Optional(Name),
    status: Type.Optional(StatusSchema),
    correlation_id: Type.Optional(Name),
    fingerprint: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description: 'Of the failure that it is stuck at or undone for.',
      }),
    ),
    needs_attention: Type.Optional(Type.Boolean({ description: 'Whether it needs attention.' })),
    ...pageParameters,
  },
  closed,
);

const Fingerprint = nullable(
  Type.String({
    description: 'The same for failures with the same cause.',
    examples: ['v2:3b0e6c1f9a7d42588c1e0f6a5d9b7c34'],
  }),
);

const SagaSchema = Type.Object(
  {
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
    payload_omitted: Type.Optional(
      Type.Literal(true, { description: 'Too large to show: over 16 KiB in lists, else over 16 MiB.' }),
    ),
  },
  { title: 'Saga' },
);

export const SagaListSchema: TSchema = Type.Object({
  sagas: Type.Array(SagaSchema),
  pagination: PaginationSchema,
});

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
