import type { Clock } from '../../kernel/clock.ts';
import { cleanText } from '../../kernel/text.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import { createUuidMaker } from '../../kernel/uuid.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { statuses } from '../domain/saga-state.ts';
import type { AddEvents, SagaEvent } from './settle-sagas.ts';

/** Where in the outbox events wait until the broker has them. */
export const eventsDestination = '_saga_events';

/** Is the outbox's: adds orders in the caller's transaction; those of one key go out in the order of the list. */
type AddOrders = (
  tx: Queryable,
  orders: readonly Readonly<{ destination: string; id: string; request: unknown; orderingKey: string }>[],
) => Promise<void>;

const dayMs = 86_400_000;

/**
 * An event is told however long the broker is away, or the topic is not there: it never becomes too old, and this many
 * retries take most of a year. What a broker refuses for good is dead, stays where it is, and shows in readiness.
 */
const patience = { maxAgeMs: 3650 * dayMs, retryMax: 100_000 };

type Settings = Readonly<{
  kafka: Readonly<{ enabled: boolean; publishTimeoutMs: number }>;
  outbox: Readonly<{ leaseMs: number; batchSize: number; parallelism: number }>;
  saga: Readonly<{ eventsTopic: string }>;
}>;

/** For the outbox, as a destination of the system itself; none where Kafka is off: then nobody is told. */
export function eventsDestinations({ kafka, outbox, saga }: Settings) {
  if (!kafka.enabled) return [];
  return [
    {
      ...patience,
      name: eventsDestination,
      type: 'kafka' as const,
      topic: saga.eventsTopic,
      key: 'ordering_key' as const,
      // A send that may take as long as its lease would never begin.
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

/** What stands in the topic. */
function presentEvent(event: SagaEvent, timestamp: string) {
  return {
    saga_id: event.sagaId,
    event_type: event.type,
    payload: {
      workflow_name: event.workflow,
      status: statusAt(event),
      current_step: event.currentStep,
      error_message: event.errorMessage === null ? null : cleanText(event.errorMessage, maxErrorBytes),
    },
    timestamp,
  };
}

/** One settle may go through two statuses: each of its events tells its own. */
function statusAt({ type, status }: SagaEvent): string {
  return statuses.find((each) => type === `SAGA_${each}`) ?? status;
}
