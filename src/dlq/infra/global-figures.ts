import { sleep } from '../../kernel/clock.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { accountSources } from '../usecase/account-sources.ts';
import type { ArchiveStore, MessageReader, PartitionStore } from '../usecase/ports.ts';

/**
 * Figures about the database are the same in every replica, so only the holder of the lease exports them: two
 * replicas would double every sum. The holder also folds the running counts together.
 */
export type GlobalFigures = Readonly<{ export(held: AbortSignal): Promise<void> }>;

const everyMs = 5000;

export function createGlobalFigures(
  metrics: Metrics,
  stores: Readonly<{ reader: MessageReader; partitions: PartitionStore; archive: ArchiveStore }>,
): GlobalFigures {
  const messages = metrics.gauge({
    name: 'dlq_messages',
    help: 'Messages by status and original topic; exported by one replica.',
    labelNames: ['status', 'topic'],
  });
  const lag = metrics.gauge({
    name: 'dlq_ingest_lag',
    help: 'Dead letters on the broker that are not stored yet; exported by one replica.',
    labelNames: ['topic', 'partition'],
  });
  const oldest = metrics.gauge({
    name: 'dlq_oldest_pending_seconds',
    help: 'The age of the oldest PENDING message; exported by one replica.',
  });

  const clear = (): void => {
    messages.reset();
    lag.reset();
    // A gauge without labels cannot be absent: "not a number" is what a replica says that does not know.
    oldest.set(Number.NaN);
  };

  clear();

  const refresh = async (): Promise<void> => {
    const [topics, sources] = await Promise.all([stores.reader.topics(), accountSources(stores.partitions)]);
    clear();
    let oldestMs = Date.now();
    for (const { topic, counts, oldestPendingAt } of topics) {
      for (const [status, count] of Object.entries(counts)) messages.set({ status, topic }, Number(count));
      if (oldestPendingAt !== null) oldestMs = Math.min(oldestMs, oldestPendingAt.getTime());
    }
    oldest.set((Date.now() - oldestMs) / 1000);
    for (const source of sources)
      if (source.lag !== null)
        lag.set({ topic: source.topic, partition: String(source.partition) }, Number(source.lag));
  };

  return {
    async export(held) {
      try {
        while (!held.aborted) {
          await stores.archive.compactCounts();
          await refresh();
          await sleep(everyMs, held);
        }
      } finally {
        clear();
      }
    },
  };
}
