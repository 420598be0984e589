import type { Clock } from '../../kernel/clock.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { extendStreak, noStreak, type Streak } from '../../kernel/targets/circuit.ts';
import { contactOf, isOutage } from '../domain/circuit.ts';
import type { Answer } from '../domain/judge-answer.ts';
import { closeCircuit, endProbe, openCircuit, openServices, takeProbe } from './circuit-table.ts';

/** The circuits as the engine of one process knows them. */
export type ServiceCircuits = Readonly<{
  isOpen(service: string): boolean;
  hasOpen(): boolean;
  /** Whether this saga is the probe of the service; if so, it is the only one for this long. */
  takeProbe(service: string, sagaId: string, forMs: number): Promise<boolean>;
  /** The answer to a call. */
  note(service: string, ended: Readonly<{ sagaId: string; answer: Answer; isProbe: boolean }>): void;
  releaseProbe(service: string, sagaId: string): void;
  /** Reads which circuits other processes have opened or closed. */
  refresh(): Promise<void>;
}>;

export type CircuitDeps = Readonly<{
  db: Queryable;
  clock: Clock;
  onChange: (service: string, state: 'open' | 'closed', reason: string) => void;
  onError: (what: string, error: unknown) => void;
}>;

export function createServiceCircuits({ db, clock, onChange, onError }: CircuitDeps): ServiceCircuits {
  const open = new Set<string>();
  const streaks = new Map<string, Streak<string>>();
  /** Services with writes in flight: the database may not know yet what is known here. */
  const writing = new Map<string, number>();

  const write = (service: string, what: string, work: () => Promise<void>): void => {
    writing.set(service, (writing.get(service) ?? 0) + 1);
    void work()
      .catch((error: unknown) => onError(`${what} the circuit of ${service}`, error))
      .finally(() => {
        const left = (writing.get(service) ?? 1) - 1;
        if (left === 0) writing.delete(service);
        else writing.set(service, left);
      });
  };

  const noteDown = (service: string, sagaId: string, reason: string): void => {
    const nowMs = clock.monotonicMs();
    const streak = extendStreak(streaks.get(service) ?? noStreak, sagaId, nowMs);
    streaks.set(service, streak);
    if (open.has(service) || !isOutage(streak, nowMs)) return;
    open.add(service);
    onChange(service, 'open', reason);
    write(service, 'opening', () => openCircuit(db, service, reason));
  };

  const noteUp = (service: string, isProbe: boolean): void => {
    streaks.delete(service);
    if (!open.delete(service) && !isProbe) return;
    onChange(service, 'closed', '');
    write(service, 'closing', () => closeCircuit(db, service));
  };

  return {
    isOpen: (service) => open.has(service),
    hasOpen: () => open.size > 0,
    takeProbe: (service, sagaId, forMs) =>
      takeProbe(db, { service, sagaId, forMs }).catch((error: unknown) => {
        onError(`taking the probe of ${service}`, error);
        return false;
      }),
    note(service, { sagaId, answer, isProbe }) {
      const contact = contactOf(answer);
      if (contact === 'up') return noteUp(service, isProbe);
      if (contact === 'down' && !isProbe)
        return noteDown(service, sagaId, 'detail' in answer ? answer.detail : '');
      if (isProbe)
        write(service, 'probing', () =>
          endProbe(db, { service, sagaId, end: contact === 'down' ? 'failed' : 'unused' }),
        );
    },
    releaseProbe: (service, sagaId) =>
      write(service, 'probing', () => endProbe(db, { service, sagaId, end: 'unused' })),
    async refresh() {
      // The result may or may not include a write that is in flight.
      const unsure = new Set(writing.keys());
      const stored = new Set(await openServices(db));
      const isSure = (service: string): boolean => !unsure.has(service) && !writing.has(service);
      for (const service of open)
        if (!stored.has(service) && isSure(service)) {
          open.delete(service);
          streaks.delete(service);
        }
      for (const service of stored) if (isSure(service)) open.add(service);
    },
  };
}

export const noCircuits: ServiceCircuits = {
  isOpen: () => false,
  hasOpen: () => false,
  takeProbe: async () => false,
  note: () => {},
  releaseProbe: () => {},
  refresh: async () => {},
};

/**
 * Reads the circuits again after a claim while one is open here. A saga that was retried because a circuit was closed is
 * claimed after that; by an older state of the circuit it would wait again, or be given up for good.
 */
export function claimWithCircuits<Options, Saga>({
  claim,
  circuits = noCircuits,
  onError,
}: Readonly<{
  claim: (options: Options) => Promise<readonly Saga[]>;
  circuits?: ServiceCircuits;
  onError: CircuitDeps['onError'];
}>): (options: Options) => Promise<readonly Saga[]> {
  return async (options) => {
    const sagas = await claim(options);
    if (sagas.length > 0 && circuits.hasOpen())
      await circuits.refresh().catch((error: unknown) => onError('reading circuits', error));
    return sagas;
  };
}
