import { Type, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../../platform/http/page-schema.ts';
import { statuses } from '../domain/saga-state.ts';

/** What the routes take and answer; the API's description is made from these. */

/** Of the columns for names. A schema counts code points, and so does PostgreSQL. */
const MAX_NAME_LENGTH = 255;
const MAX_REASON_LENGTH = 1000;

const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
/** A misspelt field is told, not ignored. */
const closed = { additionalProperties: false } as const;
const Name = Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH });
const Timestamp = Type.String({ format: 'date-time', examples: ['2026-02-20T10:30:00.000+00:00'] });
const SagaId = Type.String({ format: 'uuid' });
const StatusSchema = Type.Enum([...statuses]);
const Action = Type.Enum(['EXECUTE', 'COMPENSATE']);

/** Checked by hand, so that a wrong id is refused before the database is asked. */
const sagaIdParameter = { saga_id: Type.String({ maxLength: 1000, description: 'A UUID.' }) };
export const SagaParams = Type.Object(sagaIdParameter);
export const StepParams = Type.Object({
  ...sagaIdParameter,
  step: Type.String({ minLength: 1, maxLength: 1000, description: "The step's name in the workflow." }),
});
export const WorkflowParams = Type.Object({ name: Type.String({ minLength: 1, maxLength: 1000 }) });

export const NewWorkflowBody = Type.Object(
  { workflow_yaml: Type.String({ description: 'The workflow in YAML, or in JSON, which is YAML.' }) },
  closed,
);

export const KeyHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      description: 'With a key that was used before for this workflow, that saga is the answer.',
    }),
  ),
});

export const NewSagaBody = Type.Object(
  {
    workflow_name: Name,
    payload: Type.Optional(
      Type.Object({}, { description: 'What its steps are given, as their mappings say.' }),
    ),
    correlation_id: Type.Optional(Name),
    initiated_by: Type.Optional(
      Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'The calling service.' }),
    ),
  },
  closed,
);

export const SagaListQuery = Type.Object(
  {
    workflow_name: Type.Optional(Name),
    status: Type.Optional(StatusSchema),
    correlation_id: Type.Optional(Name),
    needs_person: Type.Optional(Type.Boolean({ description: 'Whether it waits for a person.' })),
    ...pageParameters,
  },
  closed,
);

const Reason = Type.String({ minLength: 1, maxLength: MAX_REASON_LENGTH, pattern: '\\S' });
export const OptionalReasonBody = Type.Optional(
  nullable(Type.Object({ reason: Type.Optional(Reason) }, closed)),
);
export const ReasonBody = Type.Object({ reason: Reason }, closed);
export const ResolveBody = Type.Object(
  {
    reason: Reason,
    outcome: Type.Optional(
      Type.Enum(['done', 'not_done'], { description: 'Of an action; an undo that is resolved is done.' }),
    ),
    output: Type.Optional(
      Type.Unknown({ description: 'With the outcome done: what the step would have answered.' }),
    ),
  },
  closed,
);

/** Answers are typed by what presents them; their schemas only describe them. */
const workflow = {
  name: Type.String(),
  step_count: Type.Integer(),
  step_names: Type.Array(Type.String()),
  hash: Type.String({
    description: 'Of the definition with all its defaults; new sagas begin with this one.',
  }),
};

export const RegisteredSchema: TSchema = Type.Object({
  name: workflow.name,
  step_count: workflow.step_count,
  hash: workflow.hash,
});

export const WorkflowListSchema: TSchema = Type.Object({
  workflows: Type.Array(Type.Object(workflow, { title: 'Workflow' })),
});

export const WorkflowSchema: TSchema = Type.Object(
  { ...workflow, definition: Type.Unknown({ description: 'With every default written out.' }) },
  { title: 'DefinedWorkflow' },
);

export const StartedSchema: TSchema = Type.Object({ saga_id: SagaId, status: Type.Literal('STARTED') });

export const AbortedSchema: TSchema = Type.Object({
  success: Type.Literal(true),
  saga_id: SagaId,
  status: StatusSchema,
  message: Type.String(),
});

export const ActedSchema: TSchema = Type.Object({
  success: Type.Literal(true),
  saga_id: SagaId,
  step: Type.String(),
  status: StatusSchema,
  message: Type.String(),
});

const SagaSchema = Type.Object(
  {
    saga_id: SagaId,
    workflow_name: Type.String(),
    current_step: Type.Integer({ description: 'The first step that is not done, from 0.' }),
    status: StatusSchema,
    payload: Type.Unknown({ description: 'As it is stored; null also where a list leaves it out.' }),
    correlation_id: nullable(Type.String()),
    initiated_by: nullable(Type.String()),
    error_message: nullable(Type.String({ description: 'Why it is undone: the first cause.' })),
    created_at: nullable(Timestamp),
    updated_at: nullable(Timestamp),
    compensation: Type.Enum(['none', 'running', 'done', 'stuck', 'resolved']),
    needs_person: Type.Boolean(),
    deadline_at: nullable(Timestamp),
    definition_hash: nullable(Type.String({ description: 'The definition that it began with, and keeps.' })),
    stuck: Type.Optional(
      Type.Object(
        { step: nullable(Type.String()), action: Action, reason: Type.String() },
        { description: 'Only while it waits for a person: where, and why.' },
      ),
    ),
    payload_omitted: Type.Optional(Type.Literal(true, { description: 'Only in lists: too large to show.' })),
  },
  { title: 'Saga' },
);

export const SagaListSchema: TSchema = Type.Object({
  sagas: Type.Array(SagaSchema),
  pagination: PaginationSchema,
});

export const ToldSagaSchema: TSchema = Type.Object(
  {
    saga: SagaSchema,
    step_logs: Type.Array(
      Type.Object(
        {
          id: Type.String({ format: 'uuid' }),
          saga_id: SagaId,
          step_index: Type.Integer(),
          step_name: Type.String(),
          action: Action,
          status: nullable(
            Type.Enum(['SUCCESS', 'FAILED', 'TIMEOUT', 'SKIPPED'], {
              description: 'Null while the attempt is under way.',
            }),
          ),
          request_payload: Type.Unknown(),
          response_payload: Type.Unknown(),
          error_message: nullable(Type.String()),
          started_at: nullable(Timestamp),
          completed_at: nullable(Timestamp),
          updated_at: nullable(Timestamp),
          attempt: Type.Integer(),
          actor: Type.Optional(
            Type.String({ description: 'Only where a person did it, or let it go again.' }),
          ),
          reason: Type.Optional(nullable(Type.String({ description: 'Why they did.' }))),
        },
        { title: 'StepLog' },
      ),
      { description: 'One row per attempt, by step and then by start.' },
    ),
  },
  { title: 'ToldSaga' },
);
