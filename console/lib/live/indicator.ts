/** How events come: `polling` while they do not, but the server answers; `away` while it does not. */
export type Connection = 'connecting' | 'live' | 'polling' | 'away';

/** Why updates wait: what somebody is doing with what is on screen. */
export type Hold =
  | Readonly<{ by: 'selection'; count: number }>
  | Readonly<{ by: 'dialog' | 'edit' | 'text' }>;

export type Indicator =
  | Readonly<{ state: 'live' | 'reconnecting' | 'polling' | 'stale' | 'paused' }>
  | Readonly<{ state: 'held'; hold: Hold }>;

/** Without a word of the server for this long, what is on screen may be wrong. */
const staleAfterMs = 15_000;

export function indicatorOf(
  facts: Readonly<{ connection: Connection; isPaused: boolean; hold: Hold | null; ageMs: number }>,
): Indicator {
  const { connection, isPaused, hold, ageMs } = facts;
  if (isPaused) return { state: 'paused' };
  if (ageMs > staleAfterMs) return { state: 'stale' };
  if (hold !== null) return { state: 'held', hold };
  switch (connection) {
    case 'live':
    case 'polling':
      return { state: connection };
    case 'connecting':
    case 'away':
      return { state: 'reconnecting' };
  }
}

/** The one of several that says most. */
export function mainHold(holds: Iterable<Hold>): Hold | null {
  const order: readonly Hold['by'][] = ['selection', 'edit', 'dialog', 'text'];
  return [...holds].toSorted((a, b) => order.indexOf(a.by) - order.indexOf(b.by))[0] ?? null;
}
