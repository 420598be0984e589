import type { Clock } from '../../kernel/clock.ts';
import { dayMs } from '../../kernel/duration.ts';
import { cleanText } from '../../kernel/text.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import { createUuidMaker } from '../../kernel/uuid.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { statuses } from '../domain/saga-state.ts';
import type { AddEvents, SagaEvent } from '../write-sagas.ts';

/** The outbox destination of saga events. */
export const eventsDestination = '_saga_events';

/** Adds orders to the outbox in the caller's transaction; those with the same key are delivered in order. */
type AddOrders = (
  tx: Queryable,
  orders: readonly Readonly<{ destination: string; id: string; request: unknown; orderingKey: string }>[],
) => Promise<void>;

/**
 * Events are delivered however long the broker is unavailable or the topic is missing: they never expire, and this many
 * retries take most of a year. An event that the broker refuses is dead and degrades readiness.
 */
const retries = { maxAgeMs: 3650 * dayMs, retryMax: 100_000 };

type Settings = Readonly<{
  kafka: Readonly<{ enabled: boolean; publishTimeoutMs: number }>;
  outbox: Readonly<{ leaseMs: number; batchSize: number; parallelism: number }>;
  saga: Readonly<{ eventsTopic: string }>;
}>;

/** The internal destination for the outbox; none if Kafka is disabled: then events are not published. */
export function eventsDestinations({ kafka, outbox, saga }: Settings) {
  if (!kafka.enabled) return [];
  return [
    {
      ...retries,
      name: eventsDestination,
      type: 'kafka' as const,
      topic: saga.eventsTopic,
      key: 'ordering_key' as const,
      // Must be shorter than the lease, or nothing would be sent.
      timeoutMs: Math.min(kafka.publishTimeoutMs, Math.ceil(outbox.leaseMs / 2)),
      maxInFlight: outbox.batchSize * outbox.parallelism,
      schema: undefined,
    },
  ];
}

export function createAddEvents(addOrders: AddOrders, clock: Clock): AddEvents {
  const makeId = createUuidMaker(clock);
  return (tx, events) => {
    const timestamp = formatTimestamp(clock.now());
    return addOrders(
      tx,
      events.map((event) => ({
        destination: eventsDestination,
        id: makeId(),
        orderingKey: event.sagaId,
        request: presentEvent(event, timestamp),
      })),
    );
  };
}

const maxErrorBytes = 4000;

/** The record in the topic. */
function presentEvent(event: SagaEvent, timestamp: string) {
  return {
    saga_id: event.sagaId,
    event_type: event.type,
    correlation_id: event.correlationId,
    workflow_name: event.workflow,
    payload: {
      workflow_name: event.workflow,
      status: statusAt(event),
      current_step: event.currentStep,
      error_message: event.errorMessage === null ? null : cleanText(event.errorMessage, maxErrorBytes),
    },
    timestamp,
  };
}

/** One settle may pass through two statuses: each event has its own. */
function statusAt({ type, status }: SagaEvent): string {
  return statuses.find((each) => type === `SAGA_${each}`) ?? status;
}
