import { systemClock, type Clock } from '../../kernel/clock.ts';

/**
 * Limits the calls in flight: in the process, and to each service, so that a service that hangs does not block the
 * others. Waiting sagas keep their lease, so not many wait, and not for long: if too many wait for a service, or it is
 * slow, the next saga is rejected and comes back after about as long as those before it need. A saga that has a permit
 * goes before those that wait, so that it is written once per call, not twice; but after half a second a waiting saga
 * goes first, so that sagas with many steps do not monopolize a service.
 */
export type CallSemaphore = Readonly<{
  /** Null if no permit is free. */
  tryAcquire(service: string): Permit | null;
  /** Waits for a permit; null if the saga is rejected. */
  acquire(service: string): Promise<Permit | null>;
  /** How long a rejected saga backs off. */
  backoffMs(service: string): number;
  /** Rejects everyone who waits. */
  rejectWaiting(): void;
  inFlight(): number;
}>;

export type Permit = Readonly<{
  service: string;
  release(): void;
  /** Exchanges it for a permit for another call, before those that wait get it; null if none is free. */
  exchange(service: string): Permit | null;
}>;

export type CallSemaphoreOptions = Readonly<{
  maxInFlight: number;
  maxInFlightTo: (service: string) => number;
  maxWaiting: number;
  clock?: Clock;
}>;

type Waiter = Readonly<{ service: string; sinceMs: number; admit: (permit: Permit | null) => void }>;
type Load = { inFlight: number; waiting: number; averageMs: number; freedAtMs: number };

type State = Readonly<{
  options: CallSemaphoreOptions;
  clock: Clock;
  loads: Map<string, Load>;
  waiters: Set<Waiter>;
  total: { inFlight: number };
}>;

/** Bounds for how long a saga sleeps whose service has no free call; between them it follows the length of calls. */
const minBackoffMs = 1000;
const maxBackoffMs = 30_000;
/** A saga that has waited this long comes before one that continues with its next step. */
const fairAfterMs = 500;
/** How long a saga waits for a service that is not slow. */
const maxWaitMs = 2000;
/** A service whose calls take longer is slow: few sagas wait for it, to leave room for those of other services. */
const slowMs = 1000;
/** How many sagas wait for a slow service, per permit: enough that a free permit finds the next one. */
const slowWaitingRatio = 1 / 4;
/** Weight of the last call in the moving average of call times. */
const averageWeight = 0.1;

export function createCallSemaphore(options: CallSemaphoreOptions): CallSemaphore {
  const { clock = systemClock } = options;
  const state: State = { options, clock, loads: new Map(), waiters: new Set(), total: { inFlight: 0 } };
  return {
    inFlight: () => state.total.inFlight,
    tryAcquire: (service) => tryAcquire(state, service),
    acquire: (service) => acquire(state, service),
    backoffMs(service) {
      const load = loadOf(state, service);
      const rounds = 1 + load.waiting / Math.max(1, options.maxInFlightTo(service));
      return Math.min(Math.max(rounds * callMs(state, load), minBackoffMs), maxBackoffMs);
    },
    rejectWaiting() {
      for (const waiter of state.waiters) {
        leave(state, waiter);
        waiter.admit(null);
      }
    },
  };
}

function loadOf({ loads }: State, service: string): Load {
  const known = loads.get(service);
  if (known !== undefined) return known;
  const load: Load = { inFlight: 0, waiting: 0, averageMs: 0, freedAtMs: 0 };
  loads.set(service, load);
  return load;
}

function isFree(state: State, service: string): boolean {
  const { maxInFlight, maxInFlightTo } = state.options;
  return state.total.inFlight < maxInFlight && loadOf(state, service).inFlight < maxInFlightTo(service);
}

function tryAcquire(state: State, service: string): Permit | null {
  return isFree(state, service) ? occupy(state, service) : null;
}

async function acquire(state: State, service: string): Promise<Permit | null> {
  if (isFree(state, service)) return occupy(state, service);
  const { maxWaiting, maxInFlightTo } = state.options;
  const load = loadOf(state, service);
  const isSlow = callMs(state, load) > slowMs;
  const maxHere = isSlow
    ? Math.min(maxWaiting, Math.ceil(maxInFlightTo(service) * slowWaitingRatio))
    : maxWaiting;
  if (load.waiting >= maxHere) return null;
  return waitFor(state, service, isSlow ? Math.min(2 * callMs(state, load), maxBackoffMs) : maxWaitMs);
}

function waitFor(state: State, service: string, ms: number): Promise<Permit | null> {
  return new Promise((resolve) => {
    const waiter: Waiter = {
      service,
      sinceMs: state.clock.monotonicMs(),
      admit(permit) {
        clearTimeout(timer);
        resolve(permit);
      },
    };
    const timer = setTimeout(() => {
      leave(state, waiter);
      resolve(null);
    }, ms);
    state.waiters.add(waiter);
    loadOf(state, service).waiting += 1;
  });
}

function leave(state: State, waiter: Waiter): void {
  if (state.waiters.delete(waiter)) loadOf(state, waiter.service).waiting -= 1;
}

/** Admits one waiter, who has waited since before this time. */
function admitNext(state: State, beforeMs = Number.POSITIVE_INFINITY): void {
  for (const waiter of state.waiters)
    if (waiter.sinceMs < beforeMs && isFree(state, waiter.service)) {
      leave(state, waiter);
      return waiter.admit(occupy(state, waiter.service));
    }
}

function occupy(state: State, service: string): Permit {
  const { clock, total } = state;
  const load = loadOf(state, service);
  const acquiredAtMs = clock.monotonicMs();
  if (load.inFlight === 0) load.freedAtMs = acquiredAtMs;
  total.inFlight += 1;
  load.inFlight += 1;
  let isReleased = false;
  const free = (): void => {
    if (isReleased) return;
    isReleased = true;
    total.inFlight -= 1;
    load.inFlight -= 1;
    load.freedAtMs = clock.monotonicMs();
    load.averageMs += averageWeight * (load.freedAtMs - acquiredAtMs - load.averageMs);
  };
  return {
    service,
    release() {
      free();
      admitNext(state);
    },
    exchange(next) {
      free();
      admitNext(state, clock.monotonicMs() - fairAfterMs);
      const permit = tryAcquire(state, next);
      admitNext(state);
      return permit;
    },
  };
}

/** How long a call takes on average; at least the time since a call last returned. */
function callMs({ clock }: State, { averageMs, inFlight, freedAtMs }: Load): number {
  return Math.max(averageMs, inFlight > 0 ? clock.monotonicMs() - freedAtMs : 0);
}
