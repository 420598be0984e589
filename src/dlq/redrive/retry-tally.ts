import type { ExclusionReason } from '../domain/message.ts';

export type Exclusion = Readonly<{ reason: ExclusionReason; topic: string; count: number }>;

export type RetryAllResult = Readonly<{
  retried: number;
  /** Attempts that failed or are in doubt. */
  failed: number;
  /** Left PENDING: locked by another transaction, or behind a refused message with the same key. */
  skipped: number;
  /** Left PENDING: they cannot be published now; `exclusions` says why. */
  excluded: number;
  /** Left PENDING: the call ended early. */
  remaining: number;
  exclusions: readonly Exclusion[];
  /** Why the call ended early; null if it did not. */
  ended: string | null;
}>;

/** `outage`: the broker is unavailable. `limit`: too many keys were refused. */
export type EndCause = 'outage' | 'limit';

/** The counts of a bulk call. Every due message is counted exactly once. */
export type RetryTally = Readonly<{
  add(figure: 'retried' | 'failed' | 'skipped' | 'remaining', count?: number): void;
  exclude(reason: ExclusionReason, topic: string, count?: number): void;
  /** Ends the call early. The first reason is reported. */
  end(reason: string, cause?: EndCause): void;
  ended(): string | null;
  hasOutage(): boolean;
  /** How many messages were handed to the broker so far. */
  sent(): number;
  result(): RetryAllResult;
}>;

/** Headers choose targets, so there can be many; only the largest groups are listed. */
const maxListed = 100;

export function createRetryTally(): RetryTally {
  const figures = { retried: 0, failed: 0, skipped: 0, remaining: 0 };
  const exclusions = new Map<string, Exclusion>();
  let ended: Readonly<{ reason: string; cause: EndCause }> | null = null;
  return {
    add(figure, count = 1) {
      figures[figure] += count;
    },
    exclude(reason, topic, count = 1) {
      const key = `${reason} ${topic}`;
      exclusions.set(key, { reason, topic, count: (exclusions.get(key)?.count ?? 0) + count });
    },
    end(reason, cause = 'outage') {
      ended ??= { reason, cause };
    },
    ended: () => ended?.reason ?? null,
    hasOutage: () => ended?.cause === 'outage',
    sent: () => figures.retried + figures.failed,
    result() {
      const listed = [...exclusions.values()].toSorted((a, b) => b.count - a.count);
      const excluded = listed.reduce((sum, { count }) => sum + count, 0);
      const { retried, failed, skipped, remaining } = figures;
      const exclusionsListed = listed.slice(0, maxListed);
      const reason = ended?.reason ?? null;
      return { retried, failed, skipped, excluded, remaining, exclusions: exclusionsListed, ended: reason };
    },
  };
}
