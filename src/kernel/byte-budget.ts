/** Bytes that may be in memory at once, shared by all that take from it. */
export type ByteBudget = Readonly<{
  /** Waits for room; null where there is none in time. A share larger than the budget is given alone. */
  reserve(bytes: number): Promise<Share | null>;
  /** Counts bytes that are there already, whether they have room or not. */
  take(bytes: number): Share;
}>;

export type Share = Readonly<{
  /**
   * What it turned out to be: smaller than what was reserved, as a rule. Whether there is room for it; one that is
   * alone always has room. Nothing changes after the release.
   */
  resize(bytes: number): boolean;
  release(): void;
}>;

export type BudgetOptions = Readonly<{
  bytes: number;
  /** Null waits as long as it takes. */
  waitMs: number | null;
  maxWaiting: number;
}>;

type Waiting = Readonly<{ bytes: number; admit: () => void }>;

export function createByteBudget({ bytes: total, waitMs, maxWaiting }: BudgetOptions): ByteBudget {
  const waiting: Waiting[] = [];
  let used = 0;

  const hasRoom = (bytes: number): boolean => used === 0 || used + bytes <= total;

  const share = (bytes: number): Share => {
    let held = bytes;
    let isReleased = false;
    used += bytes;
    const resize = (to: number): boolean => {
      if (isReleased) return true;
      used += to - held;
      held = to;
      admitNext();
      return used === held || used <= total;
    };
    const release = (): void => {
      resize(0);
      isReleased = true;
    };
    return { resize, release };
  };

  /** In the order of their coming: a large one is not passed by small ones for ever. */
  function admitNext(): void {
    for (let next = waiting[0]; next !== undefined && hasRoom(next.bytes); next = waiting[0]) {
      waiting.shift();
      next.admit();
    }
  }

  const leave = (entry: Waiting, resolve: (none: null) => void): void => {
    waiting.splice(waiting.indexOf(entry), 1);
    resolve(null);
    admitNext();
  };

  return {
    take: share,
    async reserve(bytes) {
      if (waiting.length === 0 && hasRoom(bytes)) return share(bytes);
      if (waiting.length >= maxWaiting) return null;
      return new Promise((resolve) => {
        const entry: Waiting = {
          bytes,
          admit() {
            clearTimeout(giveUp);
            resolve(share(bytes));
          },
        };
        const giveUp = waitMs === null ? undefined : setTimeout(() => leave(entry, resolve), waitMs);
        waiting.push(entry);
      });
    },
  };
}
