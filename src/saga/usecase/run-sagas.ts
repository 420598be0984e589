import { backoffMs } from '../../kernel/backoff.ts';
import { onceAborted, sleep, type Clock } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import { driveSaga, type DriveDeps } from './drive-saga.ts';
import { createHeldSagas } from './held-sagas.ts';
import type { HeldSaga, SagaStore } from './ports.ts';

export type EngineDeps = Omit<DriveDeps, 'isLeaseAlive' | 'mayGoOn' | 'setBack'> &
  Readonly<{
    store: SagaStore;
    clock: Clock;
    waitForWork: (ms: number, signal: AbortSignal) => Promise<void>;
  }>;

export type EngineOptions = Readonly<{
  /** How many sagas this process has at once: those with a call under way, and those that wait for a slot. */
  mostHeld: number;
  leaseMs: number;
  pollMs: number;
}>;

export type SagaEngine = Service & Readonly<{ held(): number; heldBytes(): number }>;

const claimBatch = 200;
/** Of the sagas that it has at once; one more may come on top. In memory JSON takes several times its size. */
const mostBytes = 16 * 1024 * 1024;
const retryAfterErrorMs = 500;
/** Between two renewals of what still runs at a stop. */
const afterStopMs = 100;
/** Something is due that could not be claimed: somebody else has it this moment. */
const overdueMs = 50;
const lookAloneEveryMs = 1000;
/** Where the one that was seen could not be had: somebody else was quicker. */
const lookAloneAgainMs = 5000;
const setbackPause = { initialMs: 1000, maxMs: 300_000, jitter: 0.2 };

/**
 * Claims sagas that are due and drives each of them, all at once, as long as there is room. Leases are renewed while
 * sagas are held; one whose lease is lost is let go where it stands, and whoever claims it next finds in its log what
 * may have been called. A saga that has taken its process down before is claimed when nothing else is held, and has
 * the process for itself until a call of it is answered.
 */
export function createSagaEngine(deps: EngineDeps, options: EngineOptions): SagaEngine {
  const { store, clock, slots } = deps;
  const { leaseMs, pollMs } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const held = createHeldSagas(clock);
  let loops: Promise<unknown> = Promise.resolve();
  let onRoom = (): void => {};
  let due = new AbortController();
  let isMakingRoom = false;
  let lookAloneAtMs = 0;

  /** A saga that was let go here is due again soon: the claims do not wait for their next look. */
  const lookAgainAt = (dueAt: number): void => {
    const inMs = Math.max(1, dueAt - deps.now());
    if (inMs < pollMs) setTimeout(() => due.abort(), inMs).unref();
  };
  const drivers: DriveDeps = {
    ...deps,
    isLeaseAlive: (saga) => held.isAlive(saga),
    mayGoOn(saga, after) {
      if (signal.aborted) return false;
      if (saga.runsAlone) return after !== 'answered';
      return !isMakingRoom && (after !== 'answered' || held.bytes() <= mostBytes || held.size() === 1);
    },
    onSettled(saga, written) {
      held.grow(saga);
      deps.onSettled(saga, written);
      if (!written.keepsLease && written.state.wakeAt !== null) lookAgainAt(written.state.wakeAt);
    },
    setBack: (saga) => store.setBack(saga, backoffMs(setbackPause, saga.setbacks + 1, deps.random)),
  };

  const drive = async (saga: HeldSaga): Promise<void> => {
    held.add(saga);
    try {
      await driveSaga(drivers, saga);
    } catch (error) {
      // It could not even be let go: its lease runs out.
      deps.onError(`letting go saga ${saga.id}`, error);
    } finally {
      held.remove(saga);
      onRoom();
    }
  };

  const whenRoom = async (): Promise<void> => {
    const room = Promise.withResolvers<void>();
    onRoom = room.resolve;
    await Promise.race([room.promise, sleep(pollMs, signal)]);
    onRoom = () => {};
  };

  const workAlone = async (): Promise<void> => {
    const begin = clock.monotonicMs();
    if (begin < lookAloneAtMs) return;
    lookAloneAtMs = begin + lookAloneEveryMs;
    if (!(await store.hasAlone())) return;
    isMakingRoom = true;
    slots.sendAway();
    try {
      while (held.size() > 0 && !signal.aborted) await whenRoom();
      if (signal.aborted) return;
      const [saga] = await store.claim({ limit: 1, bytes: mostBytes, leaseMs, lane: 'alone' });
      if (saga !== undefined) await drive(saga);
      // All others have at least as much time again.
      const end = clock.monotonicMs();
      lookAloneAtMs = end + Math.max(end - begin, saga === undefined ? lookAloneAgainMs : 0);
    } finally {
      isMakingRoom = false;
    }
  };

  const claimSome = async (): Promise<void> => {
    await workAlone();
    const room = Math.min(claimBatch, options.mostHeld - held.size());
    const bytes = mostBytes - held.bytes();
    if (room <= 0 || bytes <= 0) return whenRoom();
    due = new AbortController();
    const sagas = await store.claim({ limit: room, bytes, leaseMs, lane: 'together' });
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

  const renew = async (sagas: readonly HeldSaga[]): Promise<readonly HeldSaga[]> => {
    if (sagas.length === 0) return [];
    const { ids, locked, endsAtMs } = await store.renew(sagas, leaseMs);
    const [kept, skipped] = [new Set(ids), new Set(locked)];
    for (const saga of sagas) {
      if (kept.has(saga.id)) held.renew(saga, endsAtMs);
      else if (!skipped.has(saga.id)) held.remove(saga);
    }
    return sagas.filter(({ id }) => skipped.has(id));
  };

  /** Rows that somebody has locked are asked for again soon, and only they: most are being settled by ourselves. */
  const renewForEver = async (): Promise<void> => {
    let locked: readonly HeldSaga[] = [];
    for (let allAtMs = 0; !signal.aborted || held.size() > 0;) {
      const isRound = signal.aborted || clock.monotonicMs() >= allAtMs;
      if (isRound) allAtMs = clock.monotonicMs() + leaseMs / 3;
      locked = await renew(isRound ? held.all() : locked.filter(held.has)).catch((error: unknown) => {
        deps.onError('renewing leases', error);
        return [];
      });
      const pauseMs = locked.length > 0 ? leaseMs / 30 : Math.max(1, allAtMs - clock.monotonicMs());
      await (signal.aborted ? sleep(afterStopMs) : sleep(pauseMs, signal));
    }
  };

  return {
    name: 'saga engine',
    held: held.size,
    heldBytes: held.bytes,
    async start() {
      loops = Promise.all([claimAll(), renewForEver()]);
    },
    async stop(deadline) {
      stopping.abort();
      slots.sendAway();
      onRoom();
      await Promise.race([loops, onceAborted(deadline)]);
    },
  };
}
