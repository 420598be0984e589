import type { Clock } from '../../kernel/clock.ts';
import { createBoundedLabels } from '../../platform/telemetry/bounded-labels.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { DeadLetter } from '../domain/dead-letter.ts';

/** Counts what this process reads from dead-letter topics. */
export type IngestMetrics = Readonly<{
  /** This process begins to read a topic: its counters exist before they count, so that Prometheus sees their first increase. */
  leased(topic: string): void;
  ingested(topic: string, records: number): void;
  /** Dead letters that were read for the first time. */
  read(topic: string, letters: readonly DeadLetter[]): void;
}>;

export function createIngestMetrics(metrics: Metrics, clock: Clock): IngestMetrics {
  const labels = createBoundedLabels();
  const ingested = metrics.counter({
    name: 'dlq_ingested_total',
    help: 'Dead letters stored.',
    labelNames: ['topic'],
  });
  const unroutable = metrics.counter({
    name: 'dlq_unroutable_total',
    help: 'New dead letters whose original topic is unknown.',
    labelNames: ['topic'],
  });
  const delay = metrics.histogram({
    name: 'dlq_ingest_delay_seconds',
    help: 'Time from the timestamp of a new dead letter until it was stored.',
    buckets: [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200],
  });
  return {
    leased(topic) {
      for (const counter of [ingested, unroutable]) counter.inc({ topic: labels.labelOf(topic) }, 0);
    },
    ingested(topic, records) {
      ingested.inc({ topic: labels.labelOf(topic) }, records);
      metrics.kafkaConsumed(topic, records);
    },
    read(topic, letters) {
      const nowMs = clock.now().getTime();
      for (const { record } of letters)
        if (record.timestamp >= 0n) delay.observe(Math.max(0, nowMs - Number(record.timestamp)) / 1000);
      const unknown = letters.filter((letter) => letter.unroutable).length;
      if (unknown > 0) unroutable.inc({ topic: labels.labelOf(topic) }, unknown);
    },
  };
}
