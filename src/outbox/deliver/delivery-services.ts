import type { Clock } from '../../kernel/clock.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Service } from '../../kernel/service.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { Replica } from '../../platform/work/replicas.ts';
import { createSoloGate } from '../../platform/work/solo-gate.ts';
import { createSemaphore } from '../../platform/work/semaphore.ts';
import { createWaits, idlePollMs } from '../../platform/work/wait-for-due.ts';
import { notify, type Wake } from '../../platform/work/wake.ts';
import type { Worker } from '../../platform/work/work.ts';
import { outboxChannel } from '../channel.ts';
import type { DestinationStatus } from '../destinations.ts';
import { nextDueInMs } from './claim-orders.ts';
import { createDestinationGate, refreshGates, type DestinationGate } from './destination-gate.ts';
import { createPostgresDestinationState } from './destination-state.ts';
import { createDispatcher, type Dispatcher } from './dispatch-orders.ts';
import { createSendMetrics } from './send-metrics.ts';
import type { OpenDestination } from './senders/port.ts';
import { settleOrders } from './settle-orders.ts';
import { createSettleQueue } from './settle-queue.ts';

export type DeliveryDeps = Readonly<{
  db: Database;
  worker: Worker;
  clock: Clock;
  wake: Wake;
  /** Replicas share the rate of a destination. */
  replica: Pick<Replica, 'workers'>;
  log: Logger;
  metrics: Metrics;
  destinations: ReadonlyMap<string, OpenDestination>;
  batchSize: number;
  parallelism: number;
  idleSleepMs: number;
  leaseMs: number;
  ledgerTtlMs: number;
  /** The first and the longest interval between probes of an open circuit. */
  probe: Readonly<{ initialMs: number; maxMs: number }>;
}>;

export type Delivery = Readonly<{
  /** Sends orders to their destinations. */
  services: readonly Service[];
  /** Refreshes throttles and circuits; runs in every process that sends or shows orders. */
  watch: Service;
  /** Null if this process does not send to the destination. */
  statusOf(destination: string): DestinationStatus | null;
}>;

/** What is needed to send to one destination. */
type Route = Readonly<{ gate: DestinationGate; dispatcher: Dispatcher }>;

/** How late this replica learns of a pause, a throttle or a circuit of another one. */
const refreshEveryMs = 1000;

export function createDelivery(deps: DeliveryDeps): Delivery {
  const routes = createRoutes(deps);
  const dispatchers = [...routes.values()].map(({ dispatcher }) => dispatcher);
  return {
    services: [closing(deps.destinations), together(dispatchers)],
    watch: createWatch(deps, routes),
    statusOf(name) {
      const route = routes.get(name);
      if (route === undefined) return null;
      return { snapshot: route.gate.snapshot(), inFlight: route.dispatcher.inFlight() };
    },
  };
}

/** One gate and one dispatcher per destination; all dispatchers share the settle queue and the limits on claims. */
function createRoutes(deps: DeliveryDeps): ReadonlyMap<string, Route> {
  const { clock, log } = deps;
  const states = createPostgresDestinationState(deps.db);
  const onSettleRetry = (error: unknown): void => log.warn({ err: error }, 'retrying settle');
  const shared = {
    ...deps,
    ...createSendMetrics(deps.metrics, log, clock),
    queue: createSettleQueue(
      (attempts, until) => settleOrders({ ...deps, onSettleRetry }, attempts, until),
      clock,
    ),
    claims: createSemaphore(deps.parallelism),
    solo: createSoloGate(),
  };
  const routes = new Map<string, Route>();
  for (const destination of deps.destinations.values()) {
    if (destination.isDisabled) continue;
    const { name } = destination;
    const warn = (message: string) => (error: unknown) =>
      log.warn({ err: error, destination: name }, message);
    const gate = createDestinationGate(
      {
        store: states,
        clock,
        timing: { ...deps.probe, leaseMs: destination.timeoutMs },
        replicas: deps.replica.workers,
        onChange: () => routes.get(name)?.dispatcher.nudge(),
        onError: warn('failed to access throttle and circuit'),
      },
      name,
    );
    const dispatcher = createDispatcher(
      {
        ...shared,
        gate,
        ...createWaits(deps.wake, outboxChannel(name), () => nextDueInMs(deps.db, name)),
        onError: warn('failed to dispatch orders'),
      },
      destination,
    );
    routes.set(name, {
      gate,
      dispatcher: {
        ...dispatcher,
        async stop(deadline) {
          await dispatcher.stop(deadline);
          // Other replicas take over what was released.
          await notify(deps.db, outboxChannel(name)).catch(() => {});
        },
      },
    });
  }
  return routes;
}

function createWatch({ db, worker, clock, log }: DeliveryDeps, routes: ReadonlyMap<string, Route>): Service {
  const store = createPostgresDestinationState(db);
  const gates = [...routes.values()].map(({ gate }) => gate);
  const open = new Set<string>();
  const logCircuits = (): void => {
    for (const gate of gates) {
      const { destination } = gate;
      const { state, reason } = gate.snapshot().circuit;
      if (state === 'open' && !open.has(destination)) {
        open.add(destination);
        log.warn({ destination, reason }, 'circuit opened; orders of this destination wait');
      } else if (state === 'closed' && open.delete(destination)) log.info({ destination }, 'circuit closed');
    }
  };
  const isQuiet = (): boolean =>
    [...routes.values()].every(
      ({ gate, dispatcher }) =>
        !gate.isOpen() &&
        !gate.hasUnwritten() &&
        gate.snapshot().rate === null &&
        dispatcher.inFlight() === 0,
    );
  return createLoop({
    name: 'outbox gates',
    everyMs: () => (isQuiet() ? idlePollMs : refreshEveryMs),
    async run() {
      if (gates.length === 0) return;
      await refreshGates({ store, clock }, gates);
      logCircuits();
    },
    beat: () => worker.watch?.beat('outbox', 'destinations'),
    onError: (error) => log.warn({ err: error }, 'failed to refresh throttles and circuits'),
  });
}

/** Stops all dispatchers at once: each stops claiming immediately, and none waits for the sends of another. */
function together(dispatchers: readonly Dispatcher[]): Service {
  return {
    name: 'outbox dispatchers',
    async start() {
      await Promise.all(dispatchers.map((dispatcher) => dispatcher.start()));
    },
    async stop(deadline) {
      await Promise.all(dispatchers.map((dispatcher) => dispatcher.stop(deadline)));
    },
  };
}

/** Services stop in reverse order: this one starts first, so connections are closed after the last send. */
function closing(destinations: ReadonlyMap<string, OpenDestination>): Service {
  return {
    name: 'outbox connections',
    async start() {},
    async stop() {
      await Promise.all([...destinations.values()].map((destination) => destination.close()));
    },
  };
}
