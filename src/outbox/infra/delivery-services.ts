import type { Clock } from '../../kernel/clock.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Service } from '../../kernel/service.ts';
import { createSoloGate } from '../../kernel/solo-gate.ts';
import { createTurns } from '../../kernel/turns.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { countReplicas } from '../../platform/postgres/replicas.ts';
import type { Wake } from '../../platform/postgres/wake.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { GateReading } from '../usecase/describe-destinations.ts';
import { createDestinationGate, refreshGates, type DestinationGate } from '../usecase/destination-gate.ts';
import { createDispatcher, type Dispatcher } from '../usecase/dispatch-orders.ts';
import type { DeliveryStore, Destination } from '../usecase/ports.ts';
import { createSettleQueue } from '../usecase/settle-queue.ts';
import type { DestinationStateStore } from '../usecase/shared-state.ts';
import type { DestinationState } from './global-figures.ts';
import { outboxChannel } from './outbox-channel.ts';
import type { SendMetrics } from './send-metrics.ts';

export type DeliveryDeps = Readonly<{
  db: Database;
  clock: Clock;
  wake: Wake;
  log: Logger;
  store: DeliveryStore;
  states: DestinationStateStore;
  destinations: ReadonlyMap<string, Destination>;
  sends: SendMetrics;
  batchSize: number;
  parallelism: number;
  idleSleepMs: number;
  /** How often an open circuit is probed, from the first time to the last. */
  probe: Readonly<{ initialMs: number; maxMs: number }>;
}>;

export type Delivery = Readonly<{
  /** Sends orders to their destinations. */
  services: readonly Service[];
  /** Keeps an eye on throttle and circuit; in every process that sends or tells about them. */
  watch: Service;
  gateOf(destination: string): GateReading | null;
  /** For the figures; nothing where this process does not send to it. */
  stateOf(destination: string): readonly DestinationState[];
}>;

type Way = Readonly<{ gate: DestinationGate; dispatcher: Dispatcher }>;

const refreshEveryMs = 1000;

/** One gate and one dispatcher per destination; what they share is shared here. */
export function createDelivery(deps: DeliveryDeps): Delivery {
  const { db, clock, log, store, states } = deps;
  const shared = {
    store,
    clock,
    queue: createSettleQueue(store, clock),
    turns: createTurns(deps.parallelism),
    solo: createSoloGate(),
    onClaim: deps.sends.onClaim,
    onSettled: deps.sends.onSettled,
  };
  let replicas = 1;
  const ways = new Map<string, Way>();
  for (const destination of deps.destinations.values()) {
    if (destination.isDisabled) continue;
    const { name } = destination;
    const gate = createDestinationGate(
      {
        store: states,
        clock,
        timing: { ...deps.probe, leaseMs: destination.timeoutMs },
        replicas: () => replicas,
        onChange: () => ways.get(name)?.dispatcher.nudge(),
        onError: (error) => log.warn({ err: error, destination: name }, 'throttle and circuit are not known'),
      },
      name,
    );
    const dispatcher = createDispatcher(
      {
        ...shared,
        gate,
        waitForWork: (ms, signal) => deps.wake.wait(outboxChannel(name), ms, signal),
        batchSize: deps.batchSize,
        parallelism: deps.parallelism,
        idleSleepMs: deps.idleSleepMs,
        onError: (error) => log.warn({ err: error, destination: name }, 'sending orders failed'),
        onLost: deps.sends.onLost,
      },
      destination,
    );
    ways.set(name, { gate, dispatcher });
  }

  const open = new Set<string>();
  const tellOfTurns = (): void => {
    for (const [name, { gate }] of ways) {
      const { state, reason } = gate.snapshot().circuit;
      if (state === 'open' && !open.has(name)) {
        open.add(name);
        log.warn({ destination: name, reason }, 'the circuit of a destination is open: its orders wait');
      } else if (state === 'closed' && open.delete(name))
        log.info({ destination: name }, 'the circuit of a destination is closed: its orders go again');
    }
  };

  const watch = createLoop({
    name: 'outbox gates',
    everyMs: refreshEveryMs,
    async run() {
      if (ways.size === 0) return;
      replicas = Math.max(1, await countReplicas(db, { role: 'workers' }));
      await refreshGates(
        { store: states, clock },
        [...ways.values()].map(({ gate }) => gate),
      );
      tellOfTurns();
    },
    onError: (error) => log.warn({ err: error }, 'throttle and circuit could not be read'),
  });

  return {
    watch,
    services: [closing(deps.destinations), together([...ways.values()].map(({ dispatcher }) => dispatcher))],
    stateOf(name) {
      const snapshot = ways.get(name)?.gate.snapshot();
      return snapshot === undefined
        ? []
        : [{ destination: name, rate: snapshot.rate, isOpen: snapshot.circuit.state === 'open' }];
    },
    gateOf(name) {
      const way = ways.get(name);
      return way === undefined
        ? null
        : { snapshot: way.gate.snapshot(), inFlight: way.dispatcher.inFlight() };
    },
  };
}

/** All of them stop claiming at once, and none waits for what another one still has under way. */
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

/** Started first, so it is stopped last: connections close when nothing is sent any more. */
function closing(destinations: ReadonlyMap<string, Destination>): Service {
  return {
    name: 'outbox connections',
    async start() {},
    async stop() {
      await Promise.all([...destinations.values()].map((destination) => destination.close()));
    },
  };
}
