import type { Check } from '../check.ts';
import { resolveDestinations, type DestinationSettings } from './resolve-destinations.ts';
import type { KafkaConfig } from './resolve-kafka.ts';
import type { Settings } from '../schema.ts';

export type OutboxConfig = Omit<Settings['outbox'], 'destinations' | 'stuckThresholdMin'> &
  Readonly<{
    /** How long an order may be under way before it counts as stuck. */
    leaseMs: number;
    destinations: readonly DestinationSettings[];
  }>;

const MS_PER_MINUTE = 60_000;

export function resolveOutbox(settings: Settings['outbox'], kafka: KafkaConfig, check: Check): OutboxConfig {
  const { stuckThresholdMin, destinations, ...rest } = settings;
  const { backoff, ledgerTtlMs, maxAgeMs, batchSize, parallelism } = rest;
  if (backoff.maxMs < backoff.initialMs)
    check.report(
      ['outbox.backoff.max_ms', 'outbox.backoff.initial_ms'],
      'must not be less than outbox.backoff.initial_ms',
    );
  const leaseMs = Math.round(stuckThresholdMin * MS_PER_MINUTE);
  return {
    ...rest,
    leaseMs,
    destinations: resolveDestinations(
      destinations,
      {
        leaseMs,
        ledgerTtlMs,
        maxAgeMs,
        maxInFlight: batchSize * parallelism,
        kafkaEnabled: kafka.enabled,
        publishTimeoutMs: kafka.publishTimeoutMs,
      },
      check,
    ),
  };
}
