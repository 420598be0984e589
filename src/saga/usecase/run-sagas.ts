import { onceAborted, sleep, type Clock } from '../../kernel/clock.ts';
import { remainingMs, type Lease } from '../../kernel/lease.ts';
import type { Service } from '../../kernel/service.ts';
import { driveSaga, type DriveDeps } from './drive-saga.ts';
import type { HeldSaga, SagaStore } from './ports.ts';

export type EngineDeps = Omit<DriveDeps, 'isLeaseAlive' | 'isStopping'> &
  Readonly<{
    store: SagaStore;
    clock: Clock;
    waitForWork: (ms: number, signal: AbortSignal) => Promise<void>;
    onError: (what: string, error: unknown) => void;
  }>;

export type EngineOptions = Readonly<{
  /** How many sagas this process has at once: those with a call under way, and those that wait for a slot. */
  mostHeld: number;
  leaseMs: number;
  pollMs: number;
}>;

export type SagaEngine = Service & Readonly<{ held(): number }>;

const claimBatch = 200;
const retryAfterErrorMs = 500;
/** Between two renewals of what still runs at a stop. */
const afterStopMs = 100;
/** Something is due that could not be claimed: somebody else has it this moment. */
const overdueMs = 50;

/**
 * Claims sagas that are due and drives each of them, all at once, as long as there is room. Leases are renewed while
 * sagas are held; one whose lease is lost is let go where it stands, and whoever claims it next finds in its log what
 * may have been called.
 */
export function createSagaEngine(deps: EngineDeps, options: EngineOptions): SagaEngine {
  const { store, clock } = deps;
  const { leaseMs, pollMs } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const held = new Map<string, { saga: HeldSaga; lease: Lease }>();
  let loops: Promise<unknown> = Promise.resolve();
  let onRoom = (): void => {};
  let due = new AbortController();

  const isLeaseAlive = ({ id, lease }: Pick<HeldSaga, 'id' | 'lease'>): boolean => {
    const mine = held.get(id);
    return mine?.lease.epoch === lease.epoch && remainingMs(mine.lease, clock) > 0;
  };
  /** A saga that was let go here is due again soon: the claims do not wait for their next look. */
  const lookAgainAt = (dueAt: number): void => {
    const inMs = Math.max(1, dueAt - deps.now());
    if (inMs < pollMs) setTimeout(() => due.abort(), inMs).unref();
  };
  const drivers: DriveDeps = {
    ...deps,
    isLeaseAlive,
    isStopping: () => signal.aborted,
    onSettled(saga, written) {
      deps.onSettled(saga, written);
      if (!written.keepsLease && written.state.wakeAt !== null) lookAgainAt(written.state.wakeAt);
    },
  };

  const drive = async (saga: HeldSaga): Promise<void> => {
    held.set(saga.id, { saga, lease: saga.lease });
    try {
      await driveSaga(drivers, saga);
    } catch (error) {
      // Whether its last step was written nobody knows: its lease runs out.
      deps.onError(`saga ${saga.id}`, error);
    } finally {
      if (held.get(saga.id)?.saga === saga) held.delete(saga.id);
      onRoom();
    }
  };

  const whenRoom = async (): Promise<void> => {
    const room = Promise.withResolvers<void>();
    onRoom = room.resolve;
    await Promise.race([room.promise, sleep(pollMs, signal)]);
    onRoom = () => {};
  };

  const claimSome = async (): Promise<void> => {
    const room = Math.min(claimBatch, options.mostHeld - held.size);
    if (room <= 0) return whenRoom();
    due = new AbortController();
    const sagas = await store.claim(room, leaseMs);
    for (const saga of sagas) void drive(saga);
    if (sagas.length > 0) return;
    const dueInMs = await store.nextDueInMs();
    const waitMs = Math.min(
      pollMs,
      dueInMs === null || dueInMs > 0 ? Math.max(1, dueInMs ?? pollMs) : overdueMs,
    );
    await deps.waitForWork(waitMs, AbortSignal.any([signal, due.signal]));
  };

  const claimAll = async (): Promise<void> => {
    while (!signal.aborted)
      await claimSome().catch(async (error: unknown) => {
        if (!signal.aborted) deps.onError('claiming', error);
        await sleep(retryAfterErrorMs, signal);
      });
  };

  const renewAll = async (): Promise<void> => {
    const sagas = [...held.values()].map(({ saga }) => saga);
    if (sagas.length === 0) return;
    const { ids, endsAtMs } = await store.renew(sagas, leaseMs);
    const kept = new Set(ids);
    for (const saga of sagas) {
      const mine = held.get(saga.id);
      // Let go meanwhile, and perhaps claimed anew: that lease is another one.
      if (mine?.saga !== saga) continue;
      if (kept.has(saga.id)) mine.lease = { ...mine.lease, endsAtMs };
      else held.delete(saga.id);
    }
  };

  const renewForEver = async (): Promise<void> => {
    while (!signal.aborted || held.size > 0) {
      await renewAll().catch((error: unknown) => deps.onError('renewing leases', error));
      await (signal.aborted ? sleep(afterStopMs) : sleep(leaseMs / 3, signal));
    }
  };

  return {
    name: 'saga engine',
    held: () => held.size,
    async start() {
      loops = Promise.all([claimAll(), renewForEver()]);
    },
    async stop(deadline) {
      stopping.abort();
      onRoom();
      await Promise.race([loops, onceAborted(deadline)]);
    },
  };
}
