const secondMs = 1000;

/** Lets so many through in any second; says no to the others. */
export function createRateLimit(perSecond: number): (nowMs: number) => boolean {
  let lastSecond: readonly number[] = [];
  return (nowMs) => {
    lastSecond = lastSecond.filter((atMs) => atMs > nowMs - secondMs);
    if (lastSecond.length >= perSecond) return false;
    lastSecond = [...lastSecond, nowMs];
    return true;
  };
}
