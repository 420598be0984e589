import { Type, type Static } from 'typebox';
import { AppError } from '../../../kernel/errors.ts';
import { closed } from '../../../platform/http/schema-parts.ts';
import { invalidField } from '../../../platform/http/slice-input.ts';
import { defaultCanary, type Canary } from '../../domain/canary.ts';

const parts = {
  stages: Type.Array(Type.Integer({ minimum: 1, maximum: 1_000_000 }), {
    minItems: 1,
    maxItems: 20,
    default: [...defaultCanary.stages],
    description: 'How many published messages each stage ends at, in all, ascending; then all others.',
  }),
  watch_seconds: Type.Number({
    minimum: 1,
    maximum: 86_400,
    default: defaultCanary.watch_seconds,
    description: 'How long a stage is watched after its last message.',
  }),
  stop_percent: Type.Number({
    minimum: 0,
    maximum: 99,
    default: defaultCanary.stop_percent,
    description: 'The redrive stops if more than this share comes back as dead letters.',
  }),
};

export const CanarySchema = Type.Object(parts);

export const NewCanarySchema = Type.Object(
  {
    stages: Type.Optional(parts.stages),
    watch_seconds: Type.Optional(parts.watch_seconds),
    stop_percent: Type.Optional(parts.stop_percent),
  },
  { ...closed, description: 'Sends a few messages first, and watches whether they come back.' },
);

/** The canary of a request, with the defaults; null if none is wanted. */
export function readCanary(
  sent: Static<typeof NewCanarySchema> | null | undefined,
  { hasBroker }: Readonly<{ hasBroker: boolean }>,
): Canary | null {
  if (sent === null || sent === undefined) return null;
  const canary = { ...defaultCanary, ...sent };
  const isAscending = canary.stages.every((bound, i) => i === 0 || bound > (canary.stages[i - 1] ?? 0));
  if (!isAscending) throw invalidField('dlq', 'canary.stages', 'order', 'must be ascending numbers');
  if (hasBroker) return canary;
  const message = 'a canary needs Kafka, which is not enabled';
  throw new AppError('SYS_DLQ_UNSUPPORTED', 'semantic', message, {
    details: [{ field: 'canary', reason: 'unsupported', message }],
  });
}
