import { systemClock, type Clock } from '../../kernel/clock.ts';

/**
 * How many calls are under way at once: so many in the process, and so many of them to one service, so that one that
 * hangs does not stop the others. Who waits holds nothing but its place, and not for long; where too many wait for a
 * service, or it is slow, the next one is sent away and stays away about as long as those before it need. Who has a
 * slot goes on before those who wait: what is begun ends sooner, and is written down once for every call, not twice.
 * But who has waited for long goes first, so that sagas of many steps do not keep a service for themselves.
 */
export type CallSlots = Readonly<{
  /** Null where none is free at once. */
  takeNow(service: string): Slot | null;
  /** Waits for one; null for whoever is sent away. */
  take(service: string): Promise<Slot | null>;
  /** How long whoever was sent away from a service stays away. */
  pauseMs(service: string): number;
  /** Sends away everybody who waits. */
  sendAway(): void;
  inFlight(): number;
}>;

export type Slot = Readonly<{
  service: string;
  release(): void;
  /** Gives it back for one to a service, before anybody else has it; null where there is none. */
  swapFor(service: string): Slot | null;
}>;

export type CallSlotOptions = Readonly<{
  most: number;
  mostTo: (service: string) => number;
  mostWaiting: number;
  clock?: Clock;
}>;

type Waiter = Readonly<{ service: string; sinceMs: number; go: (slot: Slot | null) => void }>;
type Use = { busy: number; waiting: number; averageMs: number; freedAtMs: number };

const shortestPauseMs = 1000;
const longestPauseMs = 30_000;
const fairAfterMs = 500;
/** For the next slot of a service that answers within a moment; nobody holds a place much longer. */
const patienceMs = 2000;
/** A service whose calls take longer is slow: few wait for it, so that there is room for the sagas of others. */
const slowMs = 1000;
/** Of those that a slow service serves at once, so many wait here: a slot that comes free finds the next one. */
const slowWaiting = 1 / 4;
const weight = 0.1;

export function createCallSlots(options: CallSlotOptions): CallSlots {
  const { most, mostTo, mostWaiting, clock = systemClock } = options;
  const uses = new Map<string, Use>();
  const waiters = new Set<Waiter>();
  let inFlight = 0;

  const useOf = (service: string): Use => {
    const known = uses.get(service);
    if (known !== undefined) return known;
    const use: Use = { busy: 0, waiting: 0, averageMs: 0, freedAtMs: 0 };
    uses.set(service, use);
    return use;
  };

  const isFree = (service: string): boolean => inFlight < most && useOf(service).busy < mostTo(service);

  const occupy = (service: string): Slot => {
    const use = useOf(service);
    const takenAtMs = clock.monotonicMs();
    if (use.busy === 0) use.freedAtMs = takenAtMs;
    inFlight += 1;
    use.busy += 1;
    let isReleased = false;
    const free = (): void => {
      if (isReleased) return;
      isReleased = true;
      inFlight -= 1;
      use.busy -= 1;
      use.freedAtMs = clock.monotonicMs();
      use.averageMs += weight * (use.freedAtMs - takenAtMs - use.averageMs);
    };
    return {
      service,
      release() {
        free();
        admit();
      },
      swapFor(next) {
        free();
        admit(clock.monotonicMs() - fairAfterMs);
        const slot = takeNow(next);
        admit();
        return slot;
      },
    };
  };

  const takeNow = (service: string): Slot | null => (isFree(service) ? occupy(service) : null);

  /** One of those who wait, since a time before this one. */
  const admit = (beforeMs = Number.POSITIVE_INFINITY): void => {
    for (const waiter of waiters)
      if (waiter.sinceMs < beforeMs && isFree(waiter.service)) {
        leave(waiter);
        return waiter.go(occupy(waiter.service));
      }
  };

  const leave = (waiter: Waiter): void => {
    if (waiters.delete(waiter)) useOf(waiter.service).waiting -= 1;
  };

  /** How long one call takes; where none has come back for longer than that, at least since then. */
  const callMs = ({ averageMs, busy, freedAtMs }: Use): number =>
    Math.max(averageMs, busy > 0 ? clock.monotonicMs() - freedAtMs : 0);

  const wait = (service: string, ms: number): Promise<Slot | null> =>
    new Promise((resolve) => {
      const waiter: Waiter = {
        service,
        sinceMs: clock.monotonicMs(),
        go(slot) {
          clearTimeout(timer);
          resolve(slot);
        },
      };
      const timer = setTimeout(() => {
        leave(waiter);
        resolve(null);
      }, ms);
      waiters.add(waiter);
      useOf(service).waiting += 1;
    });

  return {
    inFlight: () => inFlight,
    takeNow,
    async take(service) {
      if (isFree(service)) return occupy(service);
      const use = useOf(service);
      const isSlow = callMs(use) > slowMs;
      const mayWait = isSlow ? Math.min(mostWaiting, Math.ceil(mostTo(service) * slowWaiting)) : mostWaiting;
      if (use.waiting >= mayWait) return null;
      return wait(service, isSlow ? Math.min(2 * callMs(use), longestPauseMs) : patienceMs);
    },
    pauseMs(service) {
      const use = useOf(service);
      const rounds = 1 + use.waiting / Math.max(1, mostTo(service));
      return Math.min(Math.max(rounds * callMs(use), shortestPauseMs), longestPauseMs);
    },
    sendAway() {
      for (const waiter of waiters) {
        leave(waiter);
        waiter.go(null);
      }
    },
  };
}
