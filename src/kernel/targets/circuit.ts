/**
 * A circuit keeps callers away from a target that is down: a destination of orders, the push target of a queue, a
 * service of sagas. All processes share it through the database, and all times are the database's, in milliseconds.
 *
 *   closed    --failures in a row show an outage-->     open, the first probe after the initial interval
 *   open      --a probe is due, one process takes it--> half-open: no second probe before this one had its time
 *   half-open --the probe was answered-->               closed
 *   half-open --the probe failed-->                     open, twice the interval up to the longest
 *   half-open --the probe was not sent-->               open, the same interval again
 *
 * Each slice decides which outcomes are failures and which are contact, what its probes are, and where the circuit is
 * stored.
 */

/** Failures in a row. An item counts once, however often it fails: one that always fails is no outage. */
export type Streak<Id> = Readonly<{
  failures: number;
  /** Different items among them, as many as any rule asks for. */
  itemIds: readonly Id[];
  firstAtMs: number;
}>;

export const noStreak: Streak<never> = { failures: 0, itemIds: [], firstAtMs: 0 };

const maxItemIds = 3;

export function extendStreak<Id>(streak: Streak<Id>, itemId: Id, nowMs = 0): Streak<Id> {
  const { failures, itemIds, firstAtMs } = streak;
  const isCounted = itemIds.length >= maxItemIds || itemIds.includes(itemId);
  return {
    failures: failures + 1,
    itemIds: isCounted ? itemIds : [...itemIds, itemId],
    firstAtMs: failures === 0 ? nowMs : firstAtMs,
  };
}

/** At least this many failures, of this many different items, over this long. */
export type OutageRule = Readonly<{ failures: number; items: number; overMs?: number }>;

export function isOutage(streak: Streak<unknown>, rules: readonly OutageRule[], nowMs = 0): boolean {
  return rules.some(
    ({ failures, items, overMs = 0 }) =>
      streak.failures >= failures &&
      streak.itemIds.length >= items &&
      (overMs === 0 || nowMs - streak.firstAtMs >= overMs),
  );
}

/** When an open circuit is probed next. */
export type Probing = Readonly<{ intervalMs: number; nextProbeAtMs: number }>;

export type ProbeTiming = Readonly<{ initialMs: number; maxMs: number }>;

export function startProbing({ initialMs }: ProbeTiming, nowMs: number): Probing {
  return { intervalMs: initialMs, nextProbeAtMs: nowMs + initialMs };
}

export function isProbeDue({ nextProbeAtMs }: Probing, nowMs: number): boolean {
  return nowMs >= nextProbeAtMs;
}

/** Moves the next probe away for as long as this one can take. That is its lease: if its process is lost, it ends. */
export function takeProbe<C extends Probing>(circuit: C, nowMs: number, leaseMs: number): C {
  return { ...circuit, nextProbeAtMs: nowMs + Math.max(circuit.intervalMs, leaseMs) };
}

export function failProbe<C extends Probing>(circuit: C, nowMs: number, { maxMs }: ProbeTiming): C {
  const intervalMs = Math.min(circuit.intervalMs * 2, maxMs);
  return { ...circuit, intervalMs, nextProbeAtMs: nowMs + intervalMs };
}

export function returnProbe<C extends Probing>(circuit: C, nowMs: number): C {
  return { ...circuit, nextProbeAtMs: nowMs + circuit.intervalMs };
}
