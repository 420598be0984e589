import type { Clock } from '../../kernel/clock.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Service } from '../../kernel/service.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { createNamedLease } from '../../platform/work/named-lease.ts';
import type { Worker } from '../../platform/work/work.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import { createServiceCircuits, type ServiceCircuits } from './service-circuits.ts';
import { createCircuitWatch, type CircuitActions, type WatchDeps } from './watch-circuits.ts';
import type { Services } from './services/open-services.ts';
import * as table from './circuit-table.ts';

export type OutageDeps = Readonly<{
  db: Database;
  worker: Worker;
  clock: Clock;
  log: Logger;
  services: Pick<Services, 'of'>;
  resume: WatchDeps['resume'];
}>;

/** How late this replica learns that another one opened or closed a circuit. */
const everyMs = 1000;
/** While no circuit is open and no saga runs here. */
const idleEveryMs = 5000;
/** A service that does not accept a connection in this time is still down. */
const connectWithinMs = 5000;

/** The circuits of services: as every engine knows them, and the service of one replica that probes and resumes. */
export function createServiceOutages({ db, worker, clock, log, services, resume }: OutageDeps): Readonly<{
  circuits: ServiceCircuits;
  /** Reads the circuits every second while the engine is busy or a circuit is open, less often otherwise. */
  startRefresh(isBusy: () => boolean): Promise<void>;
  stopRefresh(deadline: AbortSignal): Promise<void>;
  watch: Service;
}> {
  const onError = (what: string, error: unknown): void => log.warn({ err: error }, `${what} failed`);
  const circuits = createServiceCircuits({
    db,
    clock,
    onError,
    onChange: (service, state, reason) =>
      state === 'open'
        ? log.warn({ service, reason }, 'circuit opened; sagas wait for the service')
        : log.info({ service }, 'circuit closed; sagas resume'),
  });
  const watch = createCircuitWatch(
    {
      circuits: circuitActions(db),
      serviceOf: services.of,
      async connect(service) {
        await services.of(service)?.open.connect(connectWithinMs);
      },
      resume,
      onResumed: (service, count) => log.info({ service, count }, 'retried stuck sagas'),
      onError,
    },
    { everyMs, idleEveryMs },
  );
  let isBusy = (): boolean => false;
  const refresh = createLoop({
    name: 'saga circuits',
    everyMs: () => (isBusy() || circuits.hasOpen() ? everyMs : idleEveryMs),
    run: () => circuits.refresh(),
    beat: () => worker.watch?.beat('saga', 'circuit-state'),
    onError: (error) => onError('reading circuits', error),
  });
  return {
    circuits,
    startRefresh(isEngineBusy) {
      isBusy = isEngineBusy;
      return refresh.start();
    },
    stopRefresh: refresh.stop,
    watch: createNamedLease(worker, {
      name: 'saga.circuits',
      work: (signal, beat) => watch.watch(signal, beat),
      onError: (error) => onError('watching circuits', error),
    }),
  };
}

function circuitActions(db: Database): CircuitActions {
  return {
    hasWork: () => table.hasWork(db),
    listCircuits: () => table.listCircuits(db),
    wakeProbe: (service) => table.wakeProbe(db, service),
    wakeWaiting: (limit) => table.wakeWaiting(db, limit),
    stuckAt: (service, range) => table.stuckAt(db, service, range),
    closeCircuit: (service) => table.closeCircuit(db, service),
    endProbe: (ended) => table.endProbe(db, ended),
    forgetCircuit: (service) => table.forgetCircuit(db, service),
  };
}
