import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { createBoundedLabels } from './bounded-labels.ts';
import type { CounterConfiguration, GaugeConfiguration, HistogramConfiguration } from 'prom-client';

export type Metrics = Readonly<{
  httpRequests: Counter<'method' | 'route' | 'status'>;
  httpRequestDuration: Histogram<'method' | 'route' | 'status'>;
  dbQueryDuration: Histogram;
  /** Records of a topic that the broker acknowledged. */
  kafkaProduced(topic: string, records?: number): void;
  /** Records of a topic that were fetched. */
  kafkaConsumed(topic: string, records?: number): void;
  staleWrites: Counter<'slice'>;
  /** For a slice's own metrics, with its prefix. Names must be unique. */
  counter<Label extends string = never>(config: Own<CounterConfiguration<Label>>): Counter<Label>;
  gauge<Label extends string = never>(config: Own<GaugeConfiguration<Label>>): Gauge<Label>;
  histogram<Label extends string = never>(config: Own<HistogramConfiguration<Label>>): Histogram<Label>;
  contentType: string;
  /** All metrics in the Prometheus text format. */
  render(): Promise<string>;
}>;

type Own<Configuration> = Omit<Configuration, 'registers'>;

const httpLabels = ['method', 'route', 'status'] as const;
/** 0.2 is the target of the API. */
const requestBucketsSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 30];
/** Most statements find rows by a key. */
const queryBucketsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

/** Has its own registry, so that two systems in one process (as in tests) share no metrics. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const produced = new Counter({
    name: 'kafka_messages_produced_total',
    help: 'Records that the broker acknowledged.',
    labelNames: ['topic'],
    registers,
  });
  const consumed = new Counter({
    name: 'kafka_messages_consumed_total',
    help: 'Records fetched from the broker.',
    labelNames: ['topic'],
    registers,
  });
  const countByTopic = (counter: Counter<'topic'>) => {
    const labels = createBoundedLabels();
    return (topic: string, records = 1): void => counter.inc({ topic: labels.labelOf(topic) }, records);
  };
  return {
    httpRequests: new Counter({
      name: 'http_requests_total',
      help: 'Requests answered, by route pattern and status.',
      labelNames: httpLabels,
      registers,
    }),
    httpRequestDuration: new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the request line to the end of the answer.',
      labelNames: httpLabels,
      buckets: requestBucketsSeconds,
      registers,
    }),
    dbQueryDuration: new Histogram({
      name: 'db_query_duration_seconds',
      help: 'Time that a statement took, with the wait for a connection.',
      buckets: queryBucketsSeconds,
      registers,
    }),
    kafkaProduced: countByTopic(produced),
    kafkaConsumed: countByTopic(consumed),
    staleWrites: new Counter({
      name: 'redrive_stale_writes_total',
      help: 'Outcomes dropped because another worker had claimed the row meanwhile.',
      labelNames: ['slice'],
      registers,
    }),
    counter: (config) => new Counter({ ...config, registers }),
    gauge: (config) => new Gauge({ ...config, registers }),
    histogram: (config) => new Histogram({ ...config, registers }),
    contentType: registry.contentType,
    render: () => registry.metrics(),
  };
}
