import { sleep, type Clock } from '../kernel/clock.ts';
import type { Service } from '../kernel/service.ts';
import { createUuidMaker } from '../kernel/uuid.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import { createNamedLease } from '../platform/postgres/named-lease.ts';
import type { Worker } from '../platform/postgres/work.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import type { Speaker } from './message.ts';
import { destinationName, destinationOf, type Notifier, type NotifyDestination } from './notifier.ts';
import { findUnknownNotifiers } from './postgres-groups.ts';
import { tellPeople, type AddOrder, type Round } from './tell-people.ts';

/**
 * Tells people what needs one. What happened stands in `platform.notify_events`, written in the transaction in which
 * it happened. One replica groups it and hands orders to the outbox, which sends them like any other.
 */
export type NotifyDeps = Readonly<{
  db: Database;
  worker: Worker;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  notifiers: readonly Notifier[];
  speaker: Speaker;
  /** Both are the outbox's. */
  addOrder: AddOrder;
  destinationsWithDead: (db: Database, names: readonly string[]) => Promise<readonly string[]>;
}>;

export type Notify = Readonly<{
  /** For the outbox, as destinations of the system itself. */
  destinations: readonly NotifyDestination[];
  services: readonly Service[];
  checks: readonly HealthCheck[];
}>;

const lookEveryMs = 500;
const afterFailureMs = 2000;

export function createNotify(deps: NotifyDeps): Notify {
  const notifiers = new Map(deps.notifiers.map((notifier) => [destinationName(notifier), notifier]));
  const destinations = [...notifiers].map(([name, notifier]) => destinationOf(notifier, name));
  const checks = [deliveryCheck(deps, [...notifiers.keys()])];
  if (notifiers.size === 0) return { destinations, services: [], checks };

  const log = deps.logger.child({ part: 'notify' });
  const onError = (error: unknown): void =>
    log.warn({ err: error }, 'telling people failed; it is tried again');
  const onRound = createReport(deps.metrics, log);
  const telling = { ...deps, notifiers, makeId: createUuidMaker(deps.clock) };

  const service = createNamedLease(deps.worker, {
    name: 'notify',
    leaseMs: 15_000,
    onError,
    async work(held) {
      while (!held.aborted) {
        let waitMs = lookEveryMs;
        try {
          const round = await tellPeople(telling);
          onRound(round);
          if (round.isFull) waitMs = 0;
        } catch (error) {
          onError(error);
          waitMs = afterFailureMs;
        }
        await sleep(waitMs, held);
      }
    },
  });
  return { destinations, services: [service], checks };
}

function createReport(metrics: Metrics, log: Logger): (round: Round) => void {
  const events = metrics.counter({
    name: 'notify_events_total',
    help: 'Events that need a person, taken by this replica to be told.',
  });
  const messages = metrics.counter({
    name: 'notify_messages_total',
    help: 'Messages handed to the outbox by this replica, by notifier.',
    labelNames: ['notifier'],
  });
  return (round) => {
    events.inc(round.events);
    for (const { notifier, message } of round.handed) {
      messages.inc({ notifier });
      const { about, told, id } = message;
      log.info(
        { notifier, message_id: id, ...about, count: told.count, is_summary: told.isSummary },
        'a person is told',
      );
    }
  };
}

/** A message that never arrived, or never will, cannot be told of by another message: readiness says it. */
function deliveryCheck({ db, destinationsWithDead }: NotifyDeps, names: readonly string[]): HealthCheck {
  return {
    name: 'notify',
    critical: false,
    async check() {
      const dead = await destinationsWithDead(db, names);
      const unknown = await findUnknownNotifiers(db, names);
      const troubles = [
        ...(dead.length > 0 ? [`messages to people were not delivered: ${dead.join(', ')}`] : []),
        ...(unknown.length > 0
          ? [`messages are held for notifiers unknown here: ${unknown.join(', ')}`]
          : []),
      ];
      return troubles.length === 0
        ? { status: 'healthy' }
        : { status: 'degraded', message: troubles.join('; ') };
    },
  };
}
