import { sleep, type Clock } from '../kernel/clock.ts';
import type { Protection } from '../kernel/protect/protection.ts';
import type { Service } from '../kernel/service.ts';
import { createUuidMaker } from '../kernel/uuid.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import { createNamedLease } from '../platform/work/named-lease.ts';
import type { Worker } from '../platform/work/work.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import type { GroupName } from './grouping.ts';
import { masksOfGroup } from './masks-of-group.ts';
import type { Source } from './message.ts';
import { destinationName, destinationOf, type Notifier, type NotifyDestination } from './notifier.ts';
import { findUnknownNotifiers } from './postgres-groups.ts';
import { readNotifiers, type NotifierStates } from './read-notifiers.ts';
import { runRound, type AddOrder, type Round } from './notify-round.ts';

/**
 * Notifies people of items that need attention. The slices write events to `platform.notify_events` in the transaction
 * of the transition. One replica groups them and adds orders to the outbox, which delivers them like any other.
 */
export type NotifyDeps = Readonly<{
  db: Database;
  worker: Worker;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  protection: Protection;
  notifiers: readonly Notifier[];
  source: Source;
  /** Both are functions of the outbox. */
  addOrder: AddOrder;
  destinationsWithDead: (db: Database, names: readonly string[]) => Promise<readonly string[]>;
}>;

export type Notify = Readonly<{
  /** Internal destinations of the outbox. */
  destinations: readonly NotifyDestination[];
  services: readonly Service[];
  checks: readonly HealthCheck[];
  /** Whom they have told, and what they could not. */
  readNotifiers(): Promise<NotifierStates>;
}>;

/** Below a person's notice, and one cheap statement. */
const roundEveryMs = 500;
/** The database is away, or a statement failed: the next round would fail too. */
const afterFailureMs = 2000;

export function createNotify(deps: NotifyDeps): Notify {
  const notifiers = new Map(deps.notifiers.map((notifier) => [destinationName(notifier), notifier]));
  const destinations = [...notifiers].map(([name, notifier]) => destinationOf(notifier, name));
  const checks = [deliveryCheck(deps, [...notifiers.keys()])];
  const parts = {
    destinations,
    checks,
    readNotifiers: () => readNotifiers(deps.db, deps.notifiers, deps.destinationsWithDead),
  };
  if (notifiers.size === 0) return { ...parts, services: [] };

  const log = deps.logger.child({ part: 'notify' });
  const onError = (error: unknown): void =>
    log.warn({ err: error }, 'failed to send notifications; retrying');
  const onRound = createReport(deps.metrics, log);
  const roundDeps = {
    ...deps,
    notifiers,
    masksOf: (name: GroupName) => masksOfGroup(deps.protection, name),
    makeId: createUuidMaker(deps.clock),
  };

  const service = createNamedLease(deps.worker, {
    name: 'notify',
    onError,
    async work(signal, beat) {
      while (!signal.aborted) {
        let waitMs = roundEveryMs;
        try {
          const round = await runRound(roundDeps);
          onRound(round);
          beat();
          if (round.isFull) waitMs = 0;
        } catch (error) {
          onError(error);
          waitMs = afterFailureMs;
        }
        await sleep(waitMs, signal);
      }
    },
  });
  return { ...parts, services: [service] };
}

function createReport(metrics: Metrics, log: Logger): (round: Round) => void {
  const events = metrics.counter({
    name: 'notify_events_total',
    help: 'Events that need attention, processed by this replica.',
  });
  const messages = metrics.counter({
    name: 'notify_messages_total',
    help: 'Messages added to the outbox by this replica, by notifier.',
    labelNames: ['notifier'],
  });
  return (round) => {
    events.inc(round.events);
    for (const { notifier, message } of round.queued) {
      messages.inc({ notifier });
      const { about, notice, id } = message;
      log.info(
        { notifier, message_id: id, ...about, count: notice.count, is_summary: notice.isSummary },
        'queued notification',
      );
    }
  };
}

/** A notification that was not delivered cannot be reported by another one, so readiness reports it. */
function deliveryCheck({ db, destinationsWithDead }: NotifyDeps, names: readonly string[]): HealthCheck {
  return {
    name: 'notify',
    critical: false,
    async check() {
      const dead = await destinationsWithDead(db, names);
      const unknown = await findUnknownNotifiers(db, names);
      const problems = [
        ...(dead.length > 0 ? [`notifications were not delivered: ${dead.join(', ')}`] : []),
        ...(unknown.length > 0
          ? [`notifications are pending for unknown notifiers: ${unknown.join(', ')}`]
          : []),
      ];
      return problems.length === 0
        ? { status: 'healthy' }
        : { status: 'degraded', message: problems.join('; ') };
    },
  };
}
