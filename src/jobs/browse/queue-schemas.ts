import { Type, type TSchema } from 'typebox';
import { AsOf, nullable, Timestamp } from '../../platform/http/schema-parts.ts';
import { statuses } from '../domain/job.ts';
import { pauseProperties } from '../route-parts.ts';

const count = Type.Integer();

export const QueuesSchema: TSchema = Type.Object({
  queues: Type.Array(
    Type.Object(
      {
        ...pauseProperties,
        configured: Type.Boolean({ description: 'False if the defaults apply.' }),
        has_target: Type.Boolean({
          description: 'The server pushes its jobs; otherwise workers claim them.',
        }),
        target_down: nullable(
          Type.Object(
            {
              since: Timestamp,
              reason: Type.String({ examples: ['timed out after 3000 ms'] }),
              next_probe_at: Timestamp,
            },
            {
              description: 'The target does not answer. Jobs wait, at no cost, until a probe succeeds.',
            },
          ),
        ),
        max_retries: Type.Integer({ examples: [3] }),
        timeout_ms: Type.Integer({ examples: [20000] }),
        backoff: Type.Object({
          initial_ms: Type.Integer({ examples: [2000] }),
          max_ms: Type.Integer({ examples: [300000] }),
          jitter: Type.Number({ examples: [0.2] }),
        }),
        max_deferrals: Type.Integer({ examples: [100] }),
        keep_completed: Type.Boolean(),
        global_concurrency: nullable(Type.Integer({ description: 'Limit over all processes.' })),
        rate_limit: nullable(Type.Object({ count: Type.Integer(), window_ms: Type.Integer() })),
        counts: Type.Object({
          pending: count,
          running: count,
          completed: count,
          failed: count,
          dead_letter: count,
        }),
        estimated_counts: Type.Optional(
          Type.Array(Type.Enum([...statuses]), {
            description: 'Names of the counts that are estimates; missing if all are exact.',
          }),
        ),
        unresolved: Type.Integer({ description: 'Dead letters neither cancelled nor discarded.' }),
        lag_seconds: nullable(Type.Number({ description: 'How long the oldest due job has been waiting.' })),
        completed_by_minute: nullable(
          Type.Array(Type.Integer({ minimum: 0 }), {
            description:
              'Jobs completed in each of the last 30 minutes, the oldest first. Null if the queue keeps no completed jobs.',
          }),
        ),
      },
      { title: 'Queue' },
    ),
  ),
  throughput_is_partial: Type.Optional(
    Type.Literal(true, {
      description: 'Only the newest 25 000 jobs were read for `completed_by_minute`: there were more.',
    }),
  ),
  as_of: AsOf,
});
