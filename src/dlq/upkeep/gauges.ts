import type { Queryable } from '../../platform/postgres/database.ts';
import { createBoundedLabels, otherLabel } from '../../platform/telemetry/bounded-labels.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { Gauges } from '../../platform/work/gauges.ts';
import { accountSources, type SourceAccount } from '../sources.ts';
import { countMessages } from './count-messages.ts';
import { countRedriveItems } from './count-redrive-items.ts';
import { lastArchivedAt } from './archive.ts';
import { measureIndexBacklog } from './index-messages.ts';
import { compactCounts } from './topic-counts.ts';

const namedTopics = 200;
const namedPartitions = 1000;

/** Every measurement also compacts the running counts that it reads. */
export function messageGauges(
  metrics: Metrics,
  db: Queryable,
  /** Without a schedule the archive is only watched once it has run. */
  { isArchiving }: Readonly<{ isArchiving: boolean }>,
): Gauges {
  const gauges = registerGauges(metrics);
  return {
    gauges: Object.values(gauges),
    async measure() {
      await compactCounts(db);
      const [messages, sources, archivedAt, redriveItems, index] = await Promise.all([
        countMessages(db, namedTopics),
        accountSources(db),
        lastArchivedAt(db, isArchiving),
        countRedriveItems(db),
        measureIndexBacklog(db),
      ]);
      return () => {
        for (const { topic, counts } of messages.topics)
          for (const [status, count] of counts)
            gauges.messages.inc({ status, topic: topic ?? otherLabel }, count);
        gauges.oldest.set(messages.oldestPendingSeconds);
        if (messages.oldestPendingAt !== null) gauges.oldestAt.set(messages.oldestPendingAt);
        if (archivedAt !== null) gauges.archivedAt.set(archivedAt);
        gauges.missing.set(missingIn(sources));
        for (const { count, ...labels } of redriveItems) gauges.redrives.set(labels, count);
        gauges.unindexed.set(index.messages);
        gauges.indexLag.set(index.oldestSeconds);
        setLags(gauges, sources);
      };
    },
  };
}

function registerGauges(metrics: Metrics) {
  return {
    messages: metrics.gauge({
      name: 'dlq_messages',
      help: 'Messages by status and original topic; exported by one replica.',
      labelNames: ['status', 'topic'],
    }),
    lag: metrics.gauge({
      name: 'dlq_ingest_lag',
      help: 'Offsets up to the high watermark that are not read yet; exported by one replica.',
      labelNames: ['topic', 'partition'],
    }),
    stableLag: metrics.gauge({
      name: 'dlq_ingest_stable_lag',
      help: 'The part of the lag that is not behind an open transaction; exported by one replica.',
      labelNames: ['topic', 'partition'],
    }),
    blocked: metrics.gauge({
      name: 'dlq_ingest_held_back_seconds',
      help: 'How long an open transaction has blocked reading, 0 if none does; exported by one replica.',
      labelNames: ['topic', 'partition'],
    }),
    oldest: metrics.gauge({
      name: 'dlq_oldest_pending_seconds',
      help: 'Age of the oldest PENDING message; exported by one replica.',
    }),
    oldestAt: metrics.gauge({
      name: 'dlq_oldest_pending_timestamp_seconds',
      help: 'When it was stored; absent if no message is PENDING; exported by one replica.',
    }),
    missing: metrics.gauge({
      name: 'dlq_accounting_missing_messages',
      help: 'Offsets that were read and that no counter explains; exported by one replica.',
    }),
    redrives: metrics.gauge({
      name: 'dlq_redrive_progress',
      help: 'Messages of redrives that were started and have not ended, by outcome; exported by one replica.',
      labelNames: ['kind', 'state', 'outcome'],
    }),
    unindexed: metrics.gauge({
      name: 'dlq_index_backlog_messages',
      help: 'Messages that searches may miss because they are not indexed yet; exported by one replica.',
    }),
    indexLag: metrics.gauge({
      name: 'dlq_index_lag_seconds',
      help: 'How long the oldest of them has waited, 0 if there is none; exported by one replica.',
    }),
    archivedAt: metrics.gauge({
      name: 'dlq_archive_last_success_timestamp_seconds',
      help: 'When the archive last ran without an error, or when the schema was created; exported by one replica.',
    }),
  };
}

/** A surplus is as wrong as a shortage: neither makes up for the other. */
function missingIn(sources: readonly SourceAccount[]): number {
  return sources.reduce((sum, { passed, explained }) => sum + Math.abs(Number(passed - explained)), 0);
}

function setLags(
  { lag, stableLag, blocked }: ReturnType<typeof registerGauges>,
  sources: readonly SourceAccount[],
): void {
  const topics = createBoundedLabels({ limit: namedTopics });
  const partitions = createBoundedLabels({ limit: namedPartitions });
  const blockedSeconds = new Map<string, number>();
  for (const source of sources) {
    if (source.lag === null) continue;
    const topic = topics.labelOf(source.topic);
    const isNamed = topic !== otherLabel && partitions.labelOf(`${topic}/${source.partition}`) !== otherLabel;
    const labels = { topic, partition: isNamed ? String(source.partition) : otherLabel };
    lag.inc(labels, Number(source.lag));
    stableLag.inc(labels, Number(source.stableLag ?? 0n));
    // Of several partitions with one label the longest: a sum of times would mean nothing.
    const key = JSON.stringify(labels);
    const seconds = Math.max(blockedSeconds.get(key) ?? 0, source.blockedSeconds);
    blockedSeconds.set(key, seconds);
    blocked.set(labels, seconds);
  }
}
