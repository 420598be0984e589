import { sleep } from '../../kernel/clock.ts';
import type { Broker } from '../../platform/broker/port.ts';
import type { LeasedPartition } from './partitions-table.ts';

/**
 * Commits our positions as the offsets of a consumer group, for tools that show lag. They are only informative: the
 * positions that count are in PostgreSQL, and a failed commit is retried with the next positions. It commits at most
 * once a second, always the latest positions, and every hour all of them, because the offsets of a group without
 * members expire.
 */
export type PositionMirror = Readonly<{
  note(leased: LeasedPartition): void;
  run(stopping: AbortSignal): Promise<void>;
  flush(): Promise<void>;
}>;

/** The mirrored position is for people's tools; ours is in the database. */
const everyMs = 1000;
/** Kafka forgets the offsets of a group without members after a week by default. */
const recommitMs = 3_600_000;

export function createPositionMirror(
  deps: Readonly<{
    broker: Broker;
    group: string;
    isLeased: (id: bigint) => boolean;
    monotonicMs: () => number;
    onError: (error: unknown) => void;
  }>,
): PositionMirror {
  const changed = new Map<bigint, LeasedPartition>();
  const committed = new Map<bigint, { leased: LeasedPartition; atMs: number }>();

  const flush = async (): Promise<void> => {
    // The replica that reads a partition now commits its position; ours is old.
    for (const known of [changed, committed])
      for (const id of known.keys()) if (!deps.isLeased(id)) known.delete(id);
    const nowMs = deps.monotonicMs();
    for (const [id, { leased, atMs }] of committed)
      if (nowMs - atMs >= recommitMs && !changed.has(id)) changed.set(id, leased);
    if (changed.size === 0) return;
    const positions = [...changed.values()];
    changed.clear();
    try {
      await deps.broker.mirror(
        deps.group,
        positions.map((one) => ({
          topic: one.topic,
          topicId: one.topicId,
          partition: one.partition,
          offset: one.nextOffset,
        })),
        AbortSignal.timeout(5000),
      );
      for (const one of positions) committed.set(one.id, { leased: one, atMs: nowMs });
    } catch (error) {
      deps.onError(error);
      for (const one of positions) if (!changed.has(one.id)) changed.set(one.id, one);
    }
  };

  return {
    note: (leased) => void changed.set(leased.id, leased),
    flush,
    async run(stopping) {
      while (!stopping.aborted) {
        await sleep(everyMs, stopping);
        await flush();
      }
    },
  };
}
