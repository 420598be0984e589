import { sleep } from '../../kernel/clock.ts';
import type { EndedProbe, KnownCircuit } from './circuit-table.ts';

/** `busy`: the saga is locked and cannot be retried now. */
export type Resumed = 'resumed' | 'left' | 'busy';

/** The functions of circuit-table.ts, on one database. */
export type CircuitActions = Readonly<{
  /** Whether there is a circuit, or a saga that waits for a service. */
  hasWork(): Promise<boolean>;
  listCircuits(): Promise<readonly KnownCircuit[]>;
  wakeProbe(service: string): Promise<'woken' | 'busy' | 'none'>;
  wakeWaiting(limit: number): Promise<number>;
  stuckAt(
    service: string,
    range: Readonly<{ after: string | null; limit: number }>,
  ): Promise<readonly string[]>;
  closeCircuit(service: string): Promise<void>;
  endProbe(ended: EndedProbe): Promise<void>;
  forgetCircuit(service: string): Promise<void>;
}>;

export type WatchDeps = Readonly<{
  circuits: CircuitActions;
  /** Calls to a service that is not idempotent are no probes. Undefined if the service is not configured here. */
  serviceOf: (name: string) => Readonly<{ isIdempotent: boolean }> | undefined;
  /** Rejects if the service accepts no connection. */
  connect: (service: string) => Promise<void>;
  /** Retries a saga that is stuck because the service was down; null if auto-resume is off. */
  resume: ((sagaId: string, service: string) => Promise<Resumed>) | null;
  onResumed: (service: string, count: number) => void;
  onError: (what: string, error: unknown) => void;
}>;

/** When a service is back, this many waiting sagas resume per round, and as many stuck ones are retried. */
const perRound = 100;

/** How far the stuck sagas were retried since the circuit closed, and whether one of them was locked. */
type Pass = Readonly<{ since: string; after: string | null; isBusy: boolean }>;

/**
 * Runs on one replica: chooses probes for services that are down, wakes the sagas that wait for a service that is back,
 * and retries those that are stuck because of it. Every round reads its work from the database, so nothing is lost with
 * the process.
 */
export function createCircuitWatch(
  deps: WatchDeps,
  { everyMs, idleEveryMs }: Readonly<{ everyMs: number; idleEveryMs: number }>,
) {
  const { circuits } = deps;
  const passes = new Map<string, Pass>();

  const probe = async (service: string, isIdempotent: boolean): Promise<void> => {
    if (isIdempotent && (await circuits.wakeProbe(service)) !== 'none') return;
    // A call that must not be repeated is no probe: a connection has to do.
    await deps.connect(service).then(
      () => circuits.closeCircuit(service),
      () => circuits.endProbe({ service, sagaId: null, end: 'failed' }),
    );
  };

  const resume = async ({ service, since }: KnownCircuit): Promise<void> => {
    const known = passes.get(service);
    const pass = known?.since === since ? known : { since, after: null, isBusy: false };
    const ids =
      deps.resume === null ? [] : await circuits.stuckAt(service, { after: pass.after, limit: perRound });
    const last = ids.at(-1);
    if (deps.resume === null || last === undefined) {
      passes.delete(service);
      // Locked sagas are retried in another pass.
      return pass.isBusy ? undefined : circuits.forgetCircuit(service);
    }
    const ends: Resumed[] = [];
    for (const id of ids) ends.push(await deps.resume(id, service));
    passes.set(service, { since, after: last, isBusy: pass.isBusy || ends.includes('busy') });
    const count = ends.filter((end) => end === 'resumed').length;
    if (count > 0) deps.onResumed(service, count);
  };

  const look = async (circuit: KnownCircuit): Promise<void> => {
    const service = deps.serviceOf(circuit.service);
    // Left to a replica with a newer configuration.
    if (service === undefined) return;
    if (!circuit.isOpen) return resume(circuit);
    if (circuit.isProbeDue) await probe(circuit.service, service.isIdempotent);
  };

  /** Returns whether there was anything to do. */
  const round = async (): Promise<boolean> => {
    if (!(await circuits.hasWork())) return false;
    // First of all, so that they do not wait for a connection to another service.
    await circuits.wakeWaiting(perRound);
    for (const circuit of await circuits.listCircuits())
      await look(circuit).catch((error: unknown) =>
        deps.onError(`watching the circuit of ${circuit.service}`, error),
      );
    return true;
  };

  return {
    round,
    async watch(signal: AbortSignal, beat: () => void): Promise<void> {
      while (!signal.aborted) {
        const isBusy = await round().then(beatAfter(beat), (error: unknown) => {
          deps.onError('watching circuits', error);
          return true;
        });
        await sleep(isBusy ? everyMs : idleEveryMs, signal);
      }
    },
  };
}

/** Passes the result of a round without an error on. */
const beatAfter =
  (beat: () => void) =>
  <T>(result: T): T => {
    beat();
    return result;
  };
