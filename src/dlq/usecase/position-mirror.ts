import { sleep } from '../../kernel/clock.ts';
import type { HeldPartition, Source } from './ports.ts';

/**
 * Shows our positions as the committed offsets of a consumer group, for the lag tools that people have. Only
 * information: PostgreSQL is the truth, and a mirror that fails is tried again with the next positions. At
 * most one commit a second, always with the latest positions, and everything again each hour, because the
 * offsets of a group without members expire.
 */
export type PositionMirror = Readonly<{
  note(held: HeldPartition): void;
  run(stopping: AbortSignal): Promise<void>;
  flush(): Promise<void>;
}>;

const everyMs = 1000;
const againMs = 3_600_000;

export function createPositionMirror(
  deps: Readonly<{
    source: Source;
    group: string;
    isHeld: (id: bigint) => boolean;
    monotonicMs: () => number;
    onError: (error: unknown) => void;
  }>,
): PositionMirror {
  const changed = new Map<bigint, HeldPartition>();
  const shown = new Map<bigint, { held: HeldPartition; atMs: number }>();

  const flush = async (): Promise<void> => {
    // Whoever holds a partition now shows its position; ours is old.
    for (const known of [changed, shown])
      for (const id of known.keys()) if (!deps.isHeld(id)) known.delete(id);
    const nowMs = deps.monotonicMs();
    for (const [id, { held, atMs }] of shown)
      if (nowMs - atMs >= againMs && !changed.has(id)) changed.set(id, held);
    if (changed.size === 0) return;
    const held = [...changed.values()];
    changed.clear();
    try {
      await deps.source.mirror(
        deps.group,
        held.map((one) => ({
          topic: one.topic,
          topicId: one.topicId,
          partition: one.partition,
          offset: one.nextOffset,
        })),
        AbortSignal.timeout(5000),
      );
      for (const one of held) shown.set(one.id, { held: one, atMs: nowMs });
    } catch (error) {
      deps.onError(error);
      for (const one of held) if (!changed.has(one.id)) changed.set(one.id, one);
    }
  };

  return {
    note: (held) => void changed.set(held.id, held),
    flush,
    async run(stopping) {
      while (!stopping.aborted) {
        await sleep(everyMs, stopping);
        await flush();
      }
    },
  };
}
