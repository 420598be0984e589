import { Type, type TSchema } from 'typebox';
import { statuses } from '../domain/job.ts';

/** What the routes about queues take and answer. */

const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const Timestamp = Type.String({ format: 'date-time', examples: ['2026-02-20T10:30:00.000+00:00'] });

export const PauseBody = Type.Optional(
  nullable(
    Type.Object(
      { reason: Type.Optional(Type.String({ minLength: 1, maxLength: 1000, pattern: '\\S' })) },
      { additionalProperties: false },
    ),
  ),
);

const pause = {
  queue: Type.String(),
  paused: Type.Boolean(),
  paused_at: nullable(Timestamp),
  paused_by: nullable(Type.String()),
  paused_reason: nullable(Type.String()),
};

export const PauseSchema: TSchema = Type.Object(pause, { title: 'QueuePause' });

const count = Type.Integer();

export const QueuesSchema: TSchema = Type.Object({
  queues: Type.Array(
    Type.Object(
      {
        ...pause,
        configured: Type.Boolean({ description: 'False where the defaults hold.' }),
        has_target: Type.Boolean({
          description: 'The server pushes its jobs; otherwise workers fetch them.',
        }),
        max_retries: Type.Integer(),
        timeout_ms: Type.Integer(),
        backoff: Type.Object({ initial_ms: Type.Integer(), max_ms: Type.Integer(), jitter: Type.Number() }),
        max_deferrals: Type.Integer(),
        keep_completed: Type.Boolean(),
        global_concurrency: nullable(Type.Integer({ description: 'Over all processes.' })),
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
            description: 'Only where some of the counts are estimates: which.',
          }),
        ),
        unresolved: Type.Integer({ description: 'Dead letters that nobody has decided about.' }),
        lag_seconds: nullable(
          Type.Number({ description: 'For how long the job has been due that has been longest.' }),
        ),
      },
      { title: 'Queue' },
    ),
  ),
});
