import { onceAborted, sleep, type Clock } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import { driveSaga, type DriveDeps } from './drive-saga.ts';
import { createHeldSagas } from './held-sagas.ts';
import type { HeldSaga, SagaStore } from './ports.ts';
import { setbackPauseMs } from './setback-pause.ts';

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
/** A claim costs about the same for one saga and for a hundred: where there is little room, more comes in a moment. */
const moreRoomWithinMs = 20;
const retryAfterErrorMs = 500;
/** Between two renewals of what still runs at a stop. */
const afterStopMs = 100;
/** Something is due that could not be claimed: somebody else has it this moment. */
const overdueMs = 50;
const lookAloneEveryMs = 1000;
/** What still hangs after that runs beside a saga that is to run alone. */
const makeRoomWithinMs = 30_000;
/** So long sagas run alone, one after the other, before all others have their turn. */
const aloneForMs = 30_000;

/**
 * Claims sagas that are due and drives each of them, all at once, as long as there is room. Leases are renewed while
 * sagas are held; one whose lease is lost is let go where it stands, and whoever claims it next finds in its log what
 * may have been called. For a saga that has taken its process down before one process makes room, as far as that can
 * be done soon: it has the process for itself until a call of it is answered, unless that takes long.
 */
export function createSagaEngine(deps: EngineDeps, options: EngineOptions): SagaEngine {
  const { store, clock, slots } = deps;
  const { leaseMs, pollMs } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const held = createHeldSagas(clock);
  const enoughRoom = Math.min(claimBatch, Math.ceil(options.mostHeld / 4));
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
    setBack: (saga) => store.setBack(saga, setbackPauseMs(saga.setbacks + 1, deps.random)),
  };

  /** One that is held. */
  const drive = async (saga: HeldSaga): Promise<void> => {
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

  const roomNow = (): number => options.mostHeld - held.size();

  /** Until there is room for so many, or a time is over. */
  const whenRoom = async (wanted: number, mostMs: number): Promise<void> => {
    const room = Promise.withResolvers<void>();
    const over = new AbortController();
    onRoom = () => {
      if (roomNow() >= wanted) room.resolve();
    };
    await Promise.race([room.promise, sleep(mostMs, AbortSignal.any([signal, over.signal]))]);
    over.abort();
    onRoom = () => {};
  };

  const waitWhile = async (isSo: () => boolean, mostMs: number): Promise<void> => {
    const untilMs = clock.monotonicMs() + mostMs;
    while (isSo() && clock.monotonicMs() < untilMs && !signal.aborted) await whenRoom(0, pollMs);
  };

  const claimAlone = async (): Promise<HeldSaga | undefined> => {
    const [saga] = await store.claim({ limit: 1, bytes: mostBytes, leaseMs, lane: 'alone' });
    if (saga !== undefined) held.add(saga);
    return saga;
  };

  /** Claimed before there is room for it, so that no other process makes room as well. */
  const workAlone = async (): Promise<void> => {
    const beginMs = clock.monotonicMs();
    if (beginMs < lookAloneAtMs) return;
    try {
      if (!(await store.hasAlone())) return;
      let saga = await claimAlone();
      if (saga === undefined) return;
      isMakingRoom = true;
      slots.sendAway();
      await waitWhile(() => held.size() > 1, makeRoomWithinMs);
      const untilMs = clock.monotonicMs() + aloneForMs;
      for (; saga !== undefined; saga = await claimAlone()) {
        const { id, lease } = saga;
        void drive(saga);
        await waitWhile(() => held.has({ id, lease }), untilMs - clock.monotonicMs());
        if (signal.aborted || clock.monotonicMs() >= untilMs) return;
      }
    } finally {
      isMakingRoom = false;
      // All others have at least as much time again.
      const endMs = clock.monotonicMs();
      lookAloneAtMs = endMs + Math.max(endMs - beginMs, lookAloneEveryMs);
    }
  };

  const claimSome = async (): Promise<void> => {
    await workAlone();
    if (roomNow() <= 0 || held.bytes() >= mostBytes) return whenRoom(0, pollMs);
    if (roomNow() < enoughRoom) await whenRoom(enoughRoom, moreRoomWithinMs);
    // What is claimed after that would only be let go again.
    if (signal.aborted) return;
    const room = Math.min(claimBatch, roomNow());
    const bytes = Math.max(1, mostBytes - held.bytes());
    due = new AbortController();
    const sagas = await store.claim({ limit: room, bytes, leaseMs, lane: 'together' });
    for (const saga of sagas) {
      held.add(saga);
      void drive(saga);
    }
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
      else if (!skipped.has(saga.id)) held.lose(saga);
    }
    return sagas.filter(({ id }) => skipped.has(id));
  };

  /** Rows that somebody has locked are asked for again soon, and only they: most are being settled by ourselves. */
  const renewForEver = async (): Promise<void> => {
    let locked: readonly HeldSaga[] = [];
    for (let allAtMs = 0; !signal.aborted || held.all().length > 0;) {
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
