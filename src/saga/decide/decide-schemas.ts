import { Type, type TSchema } from 'typebox';
import { Action, closed, nullable, SagaId, sagaIdParameter, StatusSchema, Timestamp } from '../schemas.ts';
import { errorClasses, skipReasons } from './find-stuck.ts';

const Reason = Type.String({ minLength: 1, maxLength: 1000, pattern: '\\S' });

export const StepParams = Type.Object({
  ...sagaIdParameter,
  step: Type.String({ minLength: 1, maxLength: 1000, description: "The step's name in the workflow." }),
});
export const OptionalReasonBody = Type.Optional(
  nullable(Type.Object({ reason: Type.Optional(Reason) }, closed)),
);
export const ReasonBody = Type.Object({ reason: Reason }, closed);
export const ResolveBody = Type.Object(
  {
    reason: Reason,
    outcome: Type.Optional(
      Type.Enum(['done', 'not_done'], { description: 'Of an action; an undo is always resolved as done.' }),
    ),
    output: Type.Optional(
      Type.Unknown({ description: 'With the outcome done: what the step would have responded.' }),
    ),
  },
  closed,
);

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

const OptionalName = Type.Optional(Type.String({ minLength: 1, maxLength: 255 }));
const Instant = Type.Optional(Type.String({ maxLength: 64, description: 'ISO 8601 with time zone.' }));

export const defaultRetryLimit = 1000;

export const RetryBody = Type.Object(
  {
    workflow_name: OptionalName,
    step: OptionalName,
    action: Type.Optional(Action),
    error_class: Type.Optional(
      Type.Enum([...errorClasses], {
        description:
          'How the last attempt at the stuck step ended; unserved and unavailable: there was no call.',
      }),
    ),
    created_from: Instant,
    created_to: Instant,
    stuck_from: Instant,
    stuck_to: Instant,
    saga_ids: Type.Optional(
      Type.Array(Type.String({ maxLength: 1000 }), {
        minItems: 1,
        maxItems: 1000,
        description: 'Sagas named here are retried even if their service is not idempotent.',
      }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, default: defaultRetryLimit })),
    preview: Type.Optional(Type.Boolean({ description: 'Only report what would be retried.' })),
    reason: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1000,
        pattern: '\\S',
        description: 'Required unless it is a preview.',
      }),
    ),
  },
  closed,
);

const DoneSchema = Type.Object(
  {
    preview: Type.Literal(false),
    retried: Type.Integer(),
    skipped: Type.Integer(),
    skipped_sagas: Type.Array(Type.Object({ saga_id: SagaId, reason: Type.Enum([...skipReasons]) }), {
      description: 'The first hundred.',
    }),
    remaining: Type.Integer({ description: 'How many more match, counted up to 10 000.' }),
    has_more: Type.Boolean({ description: 'More match than were retried or skipped: repeat the request.' }),
  },
  { title: 'RetriedSagas' },
);

const PreviewSchema = Type.Object(
  {
    preview: Type.Literal(true),
    matched: Type.Integer(),
    has_more: Type.Boolean({ description: 'More match than were counted.' }),
    not_retryable: Type.Integer({ description: 'How many of these would be skipped.' }),
    sample: Type.Array(
      Type.Object({
        saga_id: SagaId,
        workflow_name: Type.String(),
        step: Type.String(),
        action: Action,
        error_class: nullable(Type.String()),
        reason: Type.String(),
        created_at: nullable(Timestamp),
        stuck_at: nullable(Timestamp),
      }),
    ),
  },
  { title: 'RetryPreview' },
);

export const RetriedSchema: TSchema = Type.Union([DoneSchema, PreviewSchema]);
