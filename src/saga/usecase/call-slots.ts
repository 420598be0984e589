/**
 * How many calls are under way at once: so many in the process, and so many of them to one service, so that one that
 * hangs does not stop the others. Who waits holds nothing but its place; where too many wait for a service, the next
 * one is sent away.
 */
export type CallSlots = Readonly<{
  /** Null where none is free at once. */
  takeNow(service: string): Slot | null;
  /** Waits for one; null where there is no room to wait. */
  take(service: string): Promise<Slot> | null;
  inFlight(): number;
}>;

export type Slot = Readonly<{ service: string; release(): void }>;

type Waiter = Readonly<{ service: string; go: (slot: Slot) => void }>;

export function createCallSlots(
  options: Readonly<{ most: number; mostTo: (service: string) => number; mostWaiting: number }>,
): CallSlots {
  const { most, mostTo, mostWaiting } = options;
  const busy = new Map<string, number>();
  const waiters: Waiter[] = [];
  let inFlight = 0;

  const isFree = (service: string): boolean => inFlight < most && (busy.get(service) ?? 0) < mostTo(service);

  const occupy = (service: string): Slot => {
    inFlight += 1;
    busy.set(service, (busy.get(service) ?? 0) + 1);
    let isReleased = false;
    return {
      service,
      release() {
        if (isReleased) return;
        isReleased = true;
        inFlight -= 1;
        busy.set(service, (busy.get(service) ?? 1) - 1);
        admit();
      },
    };
  };

  const admit = (): void => {
    const next = waiters.findIndex(({ service }) => isFree(service));
    if (next < 0) return;
    const [waiter] = waiters.splice(next, 1);
    waiter?.go(occupy(waiter.service));
  };

  return {
    inFlight: () => inFlight,
    takeNow: (service) => (isFree(service) ? occupy(service) : null),
    take(service) {
      if (isFree(service)) return Promise.resolve(occupy(service));
      if (waiters.filter((waiter) => waiter.service === service).length >= mostWaiting) return null;
      return new Promise((go) => void waiters.push({ service, go }));
    },
  };
}
