import { trace } from '@opentelemetry/api';
import type { Clock } from '../kernel/clock.ts';
import { messageOf } from '../kernel/errors.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Service } from '../kernel/service.ts';
import { createRunningWork } from '../kernel/running-work.ts';
import { createSoloGate } from '../kernel/solo-gate.ts';
import { createUuidMaker } from '../kernel/uuid.ts';
import type { Broker } from '../platform/broker/port.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import { createNamedLease } from '../platform/postgres/named-lease.ts';
import type { Replica } from '../platform/postgres/replicas.ts';
import { sql } from '../platform/postgres/sql.ts';
import type { Wake } from '../platform/postgres/wake.ts';
import type { Worker } from '../platform/postgres/work.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { withSpan } from '../platform/telemetry/tracing.ts';
import { createDecoder } from './adapter/decode-dead-letter.ts';
import { stripFailureHeaders } from './adapter/decoding/strip-failure-headers.ts';
import { addDlqRoutes, type RouteDeps } from './adapter/http-routes.ts';
import { routeByRules, routeByRulesOrName, type OriginalTopicRule } from './domain/original-topic.ts';
import { compileTopicGlobs } from './domain/topic-glob.ts';
import { createGlobalFigures } from './infra/global-figures.ts';
import { createPostgresActionStore } from './infra/postgres-action-store.ts';
import { createPostgresArchiveStore } from './infra/postgres-archive-store.ts';
import { createPostgresIngestStore } from './infra/postgres-ingest-store.ts';
import { createPostgresMessageReader } from './infra/postgres-message-reader.ts';
import { createPostgresPartitionStore, partitionsChannel } from './infra/postgres-partition-store.ts';
import { createPostgresRetryStore } from './infra/postgres-retry-store.ts';
import { archiveOnSchedule } from './infra/scheduled-archive.ts';
import { createPartitionReader } from './usecase/partition-reader.ts';
import type { PartitionStore } from './usecase/ports.ts';

/** For whoever works on the slice's topics or tables without running it. */
export { compileTopicGlobs, createPostgresArchiveStore };

export type DlqOptions = Readonly<{
  maxRetries: number;
  retryLeaseMs: number;
  republishKey: 'original' | 'uuid';
  originalTopicRules: readonly OriginalTopicRule[];
  partitionLeaseMs: number;
  archive: Readonly<{ enabled: boolean; retentionDays: number; purgeDays: number; schedule: string }>;
  topicPatterns: readonly string[];
  consumerGroup: string;
  publishTimeoutMs: number;
  discoveryIntervalMs: number;
  maxBytesInFlight: number;
}>;

export type DlqDeps = Readonly<{
  db: Database;
  worker: Worker;
  /** Null where there is no Kafka: the API works in full, and a retry says that it sent nothing. */
  broker: Broker | null;
  wake: Wake;
  replica: Replica;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  options: DlqOptions;
}>;

export type Dlq = Readonly<{
  /** Retries that run longer than the server listens end early when `stopping` aborts. */
  addRoutes(app: HttpApp, stopping: AbortSignal): void;
  /** Waits at its stop for retries that are under way: their clients may be gone, their leases are not. */
  retries: Service;
  /** Ends the attempts of lost workers; in every process that retries. */
  reaper: Service;
  /** Reads dead-letter topics; null without a broker. */
  reader: Service | null;
  /** What one replica does for all: figures and archiving. */
  maintenance: readonly Service[];
  checks: readonly HealthCheck[];
}>;

const tracer = trace.getTracer('redrive');
const reapEveryMs = 2000;
/** How many messages a retry-all claims at once; a process that dies leaves at most these in doubt. */
const retryBatchSize = 1000;

/** A database of the system that came before ours has the first migrations, but no history of them. */
export const dlqMigrations: MigrationSource = {
  slice: 'dlq',
  directory: new URL('infra/migrations/', import.meta.url),
  async baseline(tx) {
    const rows = await tx.query<{ messages: boolean; archive: boolean }>(sql`
      SELECT to_regclass('dlq.dlq_messages') IS NOT NULL AS messages,
             to_regclass('dlq.dlq_messages_archive') IS NOT NULL AS archive`);
    if (rows[0]?.messages !== true) return 0;
    return rows[0].archive ? 3 : 2;
  },
};

export function createDlq(deps: DlqDeps): Dlq {
  const { db, worker, broker, metrics, options } = deps;
  const log = deps.logger.child({ slice: 'dlq' });
  const retries = metrics.counter({
    name: 'dlq_retries_total',
    help: 'Attempts at messages, by how they ended.',
    labelNames: ['outcome'],
  });
  const archived = metrics.counter({ name: 'dlq_archived_total', help: 'Messages moved to the archive.' });

  const isDeadLetterTopic = compileTopicGlobs(options.topicPatterns);
  const partitions = createPostgresPartitionStore(db, worker);
  const archive = createPostgresArchiveStore(db);
  const reader = createPostgresMessageReader(db);
  const store = createPostgresRetryStore(worker, {
    leaseMs: options.retryLeaseMs,
    onSettleRetry: (error) => log.warn({ err: error }, 'settling is tried again'),
  });

  const running = createRunningWork('dlq retries');
  const gate = createSoloGate();
  const routeDeps: Omit<RouteDeps, 'stopping'> = {
    reader,
    store,
    partitions,
    actions: createPostgresActionStore(db),
    source: broker,
    publish: broker === null ? null : createPublisher(broker, metrics, options.publishTimeoutMs),
    clock: deps.clock,
    // Every attempt runs inside the gate, so whoever watches the gate knows what is under way.
    gate: {
      together: (work) => running.watch(gate.together(work)),
      alone: (work) => running.watch(gate.alone(work)),
      isWanted: gate.isWanted,
    },
    publishTimeoutMs: options.publishTimeoutMs,
    republishKey: options.republishKey,
    stripFailureHeaders: (headers, dialect) => stripFailureHeaders(headers, dialect ?? 'none'),
    isDeadLetterTopic,
    routesOf(deadLetterTopic) {
      const question = { deadLetterTopic, rules: options.originalTopicRules, isDeadLetterTopic };
      return { unroutable: routeByRules(question), misnamed: routeByRulesOrName(question) };
    },
    onAttempt: (outcome) => retries.inc({ outcome }),
    batchSize: retryBatchSize,
  };

  const partitionReader =
    broker === null ? null : createReader({ ...deps, broker }, log, { isDeadLetterTopic, partitions });
  const figures = createGlobalFigures(metrics, { reader, partitions, archive });
  const onLeaseError = (error: unknown): void => log.warn({ err: error }, 'maintenance failed');

  const reaper = createLoop({
    name: 'dlq reaper',
    everyMs: reapEveryMs,
    async run() {
      const reaped = await store.reap();
      if (reaped > 0) log.warn({ count: reaped }, 'attempts of lost workers were ended');
    },
    onError: (error) => log.warn({ err: error }, 'the reaper failed'),
  });

  return {
    addRoutes: (app, stopping) => addDlqRoutes(app, { ...routeDeps, stopping }),
    reader: partitionReader,
    reaper,
    retries: running.service,
    maintenance: [
      createNamedLease(worker, {
        name: 'dlq.figures',
        leaseMs: 15_000,
        work: (held) => figures.export(held),
        onError: onLeaseError,
      }),
      ...(options.archive.enabled
        ? [
            createNamedLease(worker, {
              name: 'dlq.archive',
              leaseMs: 30_000,
              work: (held) =>
                archiveOnSchedule(
                  {
                    ...options.archive,
                    store: archive,
                    onArchived(count, purged) {
                      archived.inc(count);
                      log.info({ archived: count, purged }, 'old messages were archived');
                    },
                  },
                  held,
                ),
              onError: onLeaseError,
            }),
          ]
        : []),
    ],
    checks: broker === null ? [] : [brokerCheck(broker)],
  };
}

function createPublisher(
  broker: Broker,
  metrics: Metrics,
  timeoutMs: number,
): NonNullable<RouteDeps['publish']> {
  return async (records) => {
    const results = await withSpan(tracer, 'publish', { slice: 'dlq', items: records.length }, () =>
      broker.publish(records, { timeoutMs }),
    );
    records.forEach(({ topic }, i) => {
      if (results[i]?.result === 'acked') metrics.kafkaMessagesProduced.inc({ topic });
    });
    return results;
  };
}

function createReader(
  deps: DlqDeps & Readonly<{ broker: Broker }>,
  log: Logger,
  {
    isDeadLetterTopic,
    partitions,
  }: Readonly<{ isDeadLetterTopic: (topic: string) => boolean; partitions: PartitionStore }>,
): Service {
  const { db, worker, metrics, options } = deps;
  const ingested = metrics.counter({
    name: 'dlq_ingested_total',
    help: 'Dead letters stored.',
    labelNames: ['topic'],
  });
  return createPartitionReader({
    source: deps.broker,
    partitions,
    ingest: createPostgresIngestStore(db, worker, {
      maxRetries: options.maxRetries,
      makeId: createUuidMaker(deps.clock),
      onStored: (topic, ids) => log.debug({ topic, message_ids: ids }, 'messages stored'),
    }),
    decode: createDecoder({ rules: options.originalTopicRules, isDeadLetterTopic }),
    maxRetries: options.maxRetries,
    clock: deps.clock,
    isDeadLetterTopic,
    group: options.consumerGroup,
    leaseMs: options.partitionLeaseMs,
    discoveryIntervalMs: options.discoveryIntervalMs,
    maxBytesInFlight: options.maxBytesInFlight,
    setCluster: (clusterId) => deps.replica.setKafkaCluster(clusterId),
    waitForChange: (ms, signal) => deps.wake.wait(partitionsChannel, ms, signal),
    onIngested(topic, records, bytes) {
      ingested.inc({ topic }, records);
      metrics.kafkaMessagesConsumed.inc({ topic }, records);
      log.info({ topic, records, bytes }, 'dead letters stored');
    },
    onStale() {
      worker.onStale('dlq', 1);
    },
    onTrouble: (where, message) => {
      const { topic, partition } = typeof where === 'string' ? { topic: where, partition: undefined } : where;
      log.warn({ topic, partition }, message);
    },
    onError: (what, error) => log.warn({ err: error }, `reading dead letters: ${what} failed`),
  });
}

/** A broker that is away degrades: what is stored can still be seen, and retries say what is wrong. */
function brokerCheck(broker: Broker): HealthCheck {
  return {
    name: 'kafka',
    critical: false,
    async check(signal) {
      try {
        await broker.clusterId(signal);
        return { status: 'healthy' };
      } catch (error) {
        return { status: 'degraded', message: messageOf(error) };
      }
    },
  };
}
