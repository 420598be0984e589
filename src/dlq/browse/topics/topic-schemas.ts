import { Type, type TSchema } from 'typebox';
import { AsOf, closed, nullable, Timestamp } from '../../../platform/http/schema-parts.ts';
import { statuses } from '../../domain/message.ts';
import { policyStates } from '../../domain/retry-policy.ts';
import { TopicParameter } from '../../schemas.ts';

export const TopicsQuery = Type.Object(
  { topic: Type.Optional({ ...TopicParameter, description: 'Only this one.' }) },
  closed,
);
export const TopicsSchema: TSchema = Type.Object({
  topics: Type.Array(
    Type.Object({
      topic: Type.String({ examples: ['orders.dlq.v1'] }),
      total: Type.Integer({ examples: [1] }),
      counts: Type.Object(Object.fromEntries(statuses.map((status) => [status, Type.Integer()]))),
      oldest_pending_at: nullable(Timestamp),
      arrived_per_minute: Type.Number(),
      unroutable: Type.Integer({
        description:
          'How many wait for a route, because their original topic is not known. At most 10 000 are counted, of all topics.',
      }),
      sources: Type.Array(
        Type.String({
          examples: ['orders.dlq.v1'],
          description: 'Dead-letter topics that its newest messages came from.',
        }),
      ),
      policies: Type.Array(
        Type.Object({
          name: Type.String({ examples: ['timeouts'] }),
          state: Type.Enum([...policyStates]),
        }),
        {
          description:
            'Retry policies whose topics match, in their order; which one takes a message depends on its error as well.',
        },
      ),
    }),
  ),
  truncated: Type.Optional(
    Type.Literal(true, { description: 'Only if there are more than the 10 000 topics listed.' }),
  ),
  as_of: AsOf,
});
