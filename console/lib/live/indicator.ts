/** How events come: `polling` while they do not, but the server answers; `away` while it does not. */
export type Connection = 'connecting' | 'live' | 'polling' | 'away';

/** Why updates wait: what somebody is doing with what is on screen. */
export type Hold =
  | Readonly<{ by: 'selection'; count: number }>
  | Readonly<{ by: 'dialog' | 'edit' | 'text' }>;

export type Indicator =
  | Readonly<{ state: 'live' | 'connecting' | 'reconnecting' | 'polling' | 'stale' | 'paused' }>
  | Readonly<{ state: 'held'; hold: Hold }>;

/** Without a word of the server for this long, what is on screen may be wrong. */
const staleAfterMs = 15_000;

/** `ageMs` is null until the server was heard for the first time: then no connection can have been lost. */
export function indicatorOf(
  facts: Readonly<{ connection: Connection; isPaused: boolean; hold: Hold | null; ageMs: number | null }>,
): Indicator {
  const { connection, isPaused, hold, ageMs } = facts;
  if (isPaused) return { state: 'paused' };
  if (ageMs !== null && ageMs > staleAfterMs) return { state: 'stale' };
  if (hold !== null) return { state: 'held', hold };
  switch (connection) {
    case 'live':
    case 'polling':
      return { state: connection };
    case 'connecting':
      return { state: ageMs === null ? 'connecting' : 'reconnecting' };
    case 'away':
      return { state: 'reconnecting' };
  }
}

/** The one of several that says most. */
export function mainHold(holds: Iterable<Hold>): Hold | null {
  const order: readonly Hold['by'][] = ['selection', 'edit', 'dialog', 'text'];
  return [...holds].toSorted((a, b) => order.indexOf(a.by) - order.indexOf(b.by))[0] ?? null;
}
