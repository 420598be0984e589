import { Type, type TSchema } from 'typebox';
import {
  checkedAs,
  closed,
  Instant,
  nullable,
  Reason,
  Timestamp,
  Uuid,
} from '../../platform/http/schema-parts.ts';
import { Action, SagaId, sagaIdParameter, StatusSchema } from '../schemas.ts';
import { errorClasses, skipReasons } from './find-stuck.ts';

export const StepParams = Type.Object({
  ...sagaIdParameter,
  step: Type.String({
    examples: ['reserve'],
    minLength: 1,
    maxLength: 1000,
    description: "The step's name in the workflow.",
  }),
});
export const OptionalReasonBody = Type.Optional(
  nullable(Type.Object({ reason: Type.Optional(Reason) }, closed)),
);
export const ReasonBody = Type.Object({ reason: Reason }, closed);
export const ResolveBody = Type.Object(
  {
    reason: Reason,
    outcome: Type.Optional(
      Type.Enum(['done', 'not_done'], {
        examples: ['done'],
        description: 'Of an action; an undo is always resolved as done.',
      }),
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
  message: Type.String({ examples: ['undoing'] }),
});

export const ActedSchema: TSchema = Type.Object({
  success: Type.Literal(true),
  saga_id: SagaId,
  step: Type.String({ examples: ['reserve'] }),
  status: StatusSchema,
  message: Type.String({ examples: ['undoing'] }),
});

const OptionalName = Type.Optional(Type.String({ minLength: 1, maxLength: 255 }));

export const defaultRetryLimit = 1000;

/** A request has at least one of these. */
export const retryCriteria = [
  'workflow_name',
  'step',
  'action',
  'error_class',
  'created_from',
  'created_to',
  'stuck_from',
  'stuck_to',
  'saga_ids',
] as const;

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
    created_from: Type.Optional(Instant),
    created_to: Type.Optional(Instant),
    stuck_from: Type.Optional(Instant),
    stuck_to: Type.Optional(Instant),
    saga_ids: Type.Optional(
      Type.Array(Uuid, {
        minItems: 1,
        maxItems: 1000,
        description: 'Sagas named here are retried even if their service is not idempotent.',
      }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, default: defaultRetryLimit })),
    preview: Type.Optional(Type.Boolean({ description: 'Only report what would be retried.' })),
    reason: Type.Optional({ ...Reason, description: 'Required unless it is a preview.' }),
  },
  {
    ...closed,
    examples: [{ workflow_name: 'buy', error_class: 'unavailable', reason: 'the partner is back' }],
    ...checkedAs({
      allOf: [
        { anyOf: retryCriteria.map((name) => ({ required: [name] })) },
        {
          anyOf: [
            { required: ['reason'] },
            { properties: { preview: { const: true } }, required: ['preview'] },
          ],
        },
      ],
    }),
  },
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
        workflow_name: Type.String({ examples: ['buy'] }),
        step: Type.String({ examples: ['reserve'] }),
        action: Action,
        error_class: nullable(Type.String()),
        reason: Type.String({ examples: ['the partner confirmed it by phone'] }),
        created_at: nullable(Timestamp),
        stuck_at: nullable(Timestamp),
      }),
    ),
  },
  { title: 'RetryPreview' },
);

export const RetriedSchema: TSchema = Type.Union([DoneSchema, PreviewSchema]);
