import { Type, type TSchema } from 'typebox';
import { closed, nullable, Reason, Timestamp } from '../../../platform/http/schema-parts.ts';
import { policyStates } from '../../domain/retry-policy.ts';
import { CanarySchema } from '../canary/canary-schema.ts';
import { maxCounted } from './read-policies.ts';

/** The requests and responses of the policy routes; the OpenAPI document is generated from these. */

export const PolicyParams = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 100, examples: ['timeouts'] }),
});
export const PolicyCommandBody = Type.Object({ reason: Reason }, closed);

const Count = Type.Integer({ minimum: 0, description: `At most ${maxCounted.toLocaleString('en')}.` });
const RedriveId = nullable(Type.String({ format: 'uuid' }));

export const PolicySchema: TSchema = Type.Object(
  {
    name: Type.String({ examples: ['timeouts'] }),
    state: Type.Enum([...policyStates], {
      description: '`disabled`: its canary stopped a redrive; a person has to resume it.',
    }),
    state_reason: nullable(Type.String({ examples: ['the partner is down'] })),
    state_actor: nullable(Type.String({ examples: ['alice@example.com'] })),
    state_at: Timestamp,
    configured: Type.Boolean({ description: 'False: it was removed from `dlq.auto_retry`.' }),
    topics: Type.Array(Type.String({ examples: ['orders.*'] })),
    error_classes: nullable(Type.Array(Type.String({ examples: ['java.net.SocketTimeoutException'] }))),
    fingerprints: nullable(Type.Array(Type.String())),
    delay_seconds: Type.Number({ examples: [300] }),
    backoff: Type.Number({ examples: [2] }),
    max_attempts: Type.Integer({ examples: [3] }),
    rate_per_second: Type.Number({ examples: [10] }),
    canary: nullable(CanarySchema),
    waiting: {
      ...Count,
      description: `Messages that it will retry. At most ${maxCounted.toLocaleString('en')}.`,
    },
    due: { ...Count, description: `Those of them that are due. At most ${maxCounted.toLocaleString('en')}.` },
    next_attempt_at: nullable(Timestamp),
    redrive_id: { ...RedriveId, description: 'The redrive of the current round.' },
    last_redrive_id: RedriveId,
    last_round_at: nullable(Timestamp),
    last_result: nullable(Type.String({ examples: ['25 messages: 25 published'] })),
    failures: Type.Integer({ description: 'Outages and failed plans in a row.' }),
    not_before: nullable({
      ...Timestamp,
      description: 'No round before this time, because of an outage or a failed plan.',
    }),
  },
  { title: 'RetryPolicy' },
);

export const PolicyListSchema: TSchema = Type.Object({ policies: Type.Array(PolicySchema) });
