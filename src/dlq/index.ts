import type { Clock } from '../kernel/clock.ts';
import { compileGlobs } from '../kernel/glob/match-glob.ts';
import type { Rights } from '../kernel/access/rights.ts';
import type { Service } from '../kernel/service.ts';
import { createReaper } from '../platform/work/reaper.ts';
import { createRunningWork, type RunningWork } from '../platform/work/running-work.ts';
import { createSoloGate } from '../platform/work/solo-gate.ts';
import { createUuidMaker } from '../kernel/uuid.ts';
import type { Broker } from '../platform/broker/port.ts';
import type { MaskPayloads } from '../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import { stringifyWithRaw } from '../platform/http/raw-json.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import { createGauges } from '../platform/work/gauges.ts';
import type { Replica } from '../platform/work/replicas.ts';
import { sql } from '../platform/postgres/sql.ts';
import type { Wake } from '../platform/work/wake.ts';
import { messages } from './messages-table.ts';
import { hasRow, type Worker } from '../platform/work/work.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { MasterKey } from '../platform/protect/master-key.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { createDecoder } from './ingest/decoding/decode-dead-letter.ts';
import { isJsonForPostgres } from './ingest/decoding/json-view.ts';
import { stripFailureHeaders } from './ingest/decoding/strip-failure-headers.ts';
import { findHead, getMessage } from './browse/find-message.ts';
import { getVersion, newestVersion } from './browse/read-versions.ts';
import { createMessageFinder } from './browse/find-items.ts';
import { addBrowseRoutes, reserveMessage } from './browse/routes.ts';
import { decideMessages } from './decide/decide-messages.ts';
import { addDecideRoutes } from './decide/routes.ts';
import type { RetryAllDeps } from './redrive/retry-all.ts';
import { createPublish } from './redrive/create-publish.ts';
import { createRedriveRunner } from './redrive/planned/redrive-runner.ts';
import { createPolicies } from './redrive/policies/create-policies.ts';
import type { RetryPolicy } from './redrive/policies/policies-table.ts';
import { addPolicyRoutes, createPolicyFinder } from './redrive/policies/policy-routes.ts';
import { addRedrivePlanRoutes, type RedriveRouteDeps } from './redrive/planned/redrive-routes.ts';
import { addRedriveRoutes } from './redrive/routes.ts';
import { attemptEnds, reapAttempts } from './redrive/settle-messages.ts';
import type { Payloads } from './domain/payloads.ts';
import { routeByRules, routeByRulesOrName, type OriginalTopicRule } from './domain/original-topic.ts';
import type { Compression } from '../kernel/broker-record.ts';
import { createTargetRule } from './domain/target-rule.ts';
import { messageGauges } from './upkeep/gauges.ts';
import { createBrokerChecks } from './ingest/broker-checks.ts';
import { archiveMessages, createMessageArchive, purgeArchive } from './upkeep/archive.ts';
import { deriveFingerprints } from './upkeep/derive-fingerprints.ts';
import { createGroupRetention } from './upkeep/group-retention.ts';
import { createMessageIndexer, indexCheck } from './upkeep/index-messages.ts';
import { createRedriveRetention } from './upkeep/redrive-retention.ts';
import { recountMessages } from './upkeep/topic-counts.ts';
import { partitionsChannel } from './sources.ts';
import { createProtection, type Protection, type ProtectionDeps } from './upkeep/create-protection.ts';
import { removeAtIngest, type RemovalRules } from './ingest/remove-at-ingest.ts';
import { createIngestMetrics } from './ingest/ingest-metrics.ts';
import { createFingerprintStore } from './ingest/store-fingerprints.ts';
import { createPartitionReader, type PartitionReader } from './ingest/partition-reader.ts';

/** For commands that work on the slice's topics or tables without running it. */
export { archiveMessages, deriveFingerprints, purgeArchive, recountMessages };
export { dlqForInbox } from './browse/inbox/dlq-for-inbox.ts';
export { watchedMessages } from './browse/watched-messages.ts';
export { watchRedrives } from './redrive/planned/follow/watch-redrives.ts';

export type DlqOptions = Readonly<{
  maxRetries: number;
  retryLeaseMs: number;
  republishKey: 'original' | 'uuid';
  republishCompression: Compression | 'source';
  originalTopicRules: readonly OriginalTopicRule[];
  /** Patterns of the topics that messages may be published to; undefined: all but dead-letter topics. */
  allowedTargets?: readonly string[] | undefined;
  partitionLeaseMs: number;
  openTransactionAlertMs: number;
  archive: Readonly<{ enabled: boolean; retentionDays: number; purgeDays: number; schedule: string }>;
  topicPatterns: readonly string[];
  consumerGroup: string;
  publishTimeoutMs: number;
  discoveryIntervalMs: number;
  maxBytesInFlight: number;
  encryptedTopics: readonly string[];
  removal: RemovalRules;
  autoRetry: readonly RetryPolicy[];
  redrive: Readonly<{ maxWithoutApproval: number }>;
}>;

export type DlqDeps = Readonly<{
  db: Database;
  worker: Worker;
  /** Null without Kafka: the API works, and a retry reports that it sent nothing. */
  broker: Broker | null;
  /** Wraps the keys of encrypted messages; null if none is configured. */
  masterKey: MasterKey | null;
  wake: Wake;
  rights: Rights;
  replica: Replica;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  maskPayloads: MaskPayloads;
  options: DlqOptions;
}>;

export type Dlq = Readonly<{
  /** Bulk retries end early when `stopping` aborts. */
  addRoutes(app: HttpApp, stopping: AbortSignal): void;
  /** Messages and redrives, by id, key or trace. */
  find: ReturnType<typeof createMessageFinder>;
  /** Its stop waits for running retries, even if their clients have disconnected. */
  retries: Service;
  /** Plans and runs redrives; runs in every process with role api or workers. */
  redrives: Service;
  /** Ends attempts whose lease expired; runs in every process that retries. */
  reaper: Service;
  /** Reads dead-letter topics; null without a broker. */
  reader: Service | null;
  /** What one replica at a time does for all: gauges and the archive. */
  maintenance: readonly Service[];
  checks: readonly HealthCheck[];
}>;

/** How late an expired attempt is ended; leases last tens of seconds. */
const reapEveryMs = 2000;
/** How many messages a bulk retry claims at once; a process that dies leaves at most these in doubt. */
const retryBatchSize = 1000;
const maxRedriveItems = 1_000_000;
/** A redrive whose target accepts nothing for this long stops. */
const redriveOutageMs = 10 * 60_000;

/** A database of the predecessor has the first migrations, but no history of them. */
export const dlqMigrations: MigrationSource = {
  slice: 'dlq',
  directory: new URL('migrations/', import.meta.url),
  async baseline(tx) {
    const rows = await tx.query<{ messages: boolean; archive: boolean }>(sql`
      SELECT to_regclass('dlq.dlq_messages') IS NOT NULL AS messages,
             to_regclass('dlq.dlq_messages_archive') IS NOT NULL AS archive`);
    if (rows[0]?.messages !== true) return 0;
    return rows[0].archive ? 3 : 2;
  },
};

/** For commands that read messages without running the slice, too. */
export function openPayloads(deps: Omit<ProtectionDeps, 'isJson'>): Protection {
  return createProtection({ ...deps, isJson: isJsonForPostgres });
}

export function createDlq(deps: DlqDeps): Dlq {
  const { db, broker, options } = deps;
  const log = deps.logger.child({ slice: 'dlq' });
  const isDeadLetterTopic = compileGlobs(options.topicPatterns);
  const running = createRunningWork('dlq retries');
  const { payloads, check: encryptionCheck } = openPayloads({ ...deps, ...options });
  const retryDeps = createRetryDeps(deps, log, { isDeadLetterTopic, running, payloads });
  const makeId = createUuidMaker(deps.clock);
  const policies = createPolicies({ ...deps, log, makeId, isDeadLetterTopic }, options.autoRetry);
  // Without authentication there is no second person.
  const approvalBound = deps.rights.areKept ? options.redrive.maxWithoutApproval : null;
  const planned: PlannedDeps = { makeId, maxItems: maxRedriveItems, rights: deps.rights, approvalBound };
  const reader = broker === null ? null : createReader({ ...deps, broker, payloads }, log, isDeadLetterTopic);

  return {
    addRoutes: (app, stopping) => addRoutes(app, deps, { ...retryDeps, planned, stopping }),
    find: createMessageFinder({ db, payloads, masking: deps.maskPayloads('topics', 'dlq:payloads:view') }),
    reader,
    reaper: createReaper({
      slice: 'dlq',
      worker: deps.worker,
      clock: deps.clock,
      everyMs: reapEveryMs,
      shortestLeaseMs: options.retryLeaseMs,
      hasLeased: () => hasRow(db, messages, sql`t.status = 'RETRYING'`),
      reap: () => reapAttempts(db),
      onReaped: (count) => log.warn({ count }, 'released messages of lost workers'),
      onError: (error) => log.warn({ err: error }, 'reaper failed'),
    }),
    retries: running.service,
    redrives: createRedriveRunner({
      ...retryDeps,
      db,
      ...planned,
      outageMs: redriveOutageMs,
      decide: decideMessages,
      broker,
      wait: (channel, ms, signal) => deps.wake.wait(channel, ms, signal),
      onError: (error) => log.warn({ err: error }, 'redrive failed; trying again'),
    }),
    maintenance: [...createMaintenance(deps, log), ...policies.services],
    checks: [
      indexCheck(db),
      encryptionCheck,
      ...policies.checks,
      ...createBrokerChecks({ ...deps, ...options }, reader),
    ],
  };
}

type PlannedDeps = Pick<RedriveRouteDeps, 'makeId' | 'maxItems' | 'rights' | 'approvalBound'>;
function addRoutes(
  app: HttpApp,
  deps: DlqDeps,
  { planned, ...retryDeps }: RetryAllDeps & Readonly<{ planned: PlannedDeps }>,
): void {
  const { db, broker } = deps;
  const { isDeadLetterTopic, isAllowedTarget, stopping, payloads } = retryDeps;
  const masking = deps.maskPayloads('topics', 'dlq:payloads:view');
  // Payloads are JSON text from PostgreSQL and are sent as they are: a serializer would round their numbers.
  app.setReplySerializer((payload) => stringifyWithRaw(payload));
  const shared = { db, broker, payloads, masking, isJson: isJsonForPostgres };
  addBrowseRoutes(app, { ...shared, findPolicies: createPolicyFinder(db, isDeadLetterTopic) });
  addRedriveRoutes(app, { ...retryDeps, rights: planned.rights });
  addRedrivePlanRoutes(app, { ...shared, ...planned, stopping, hasBroker: broker !== null });
  addPolicyRoutes(app, db);
  addDecideRoutes(app, {
    ...shared,
    isDeadLetterTopic,
    isAllowedTarget,
    findHead: (id) => findHead(db, id),
    getMessage: (id) => getMessage(db, id, payloads),
    getRecord: async (id) => getVersion(db, { id, version: await newestVersion(db, id) }, payloads),
    reserveMessage: (request, id) => reserveMessage(db, request, id),
    reap: (id) => reapAttempts(db, id),
  });
}

function createRetryDeps(
  deps: DlqDeps,
  log: Logger,
  {
    isDeadLetterTopic,
    running,
    payloads,
  }: Readonly<{ isDeadLetterTopic: (topic: string) => boolean; running: RunningWork; payloads: Payloads }>,
): Omit<RetryAllDeps, 'stopping'> {
  const { db, worker, broker, metrics, options } = deps;
  const retries = metrics.counter({
    name: 'dlq_retries_total',
    help: 'Attempts at messages, by how they ended.',
    labelNames: ['outcome'],
  });
  for (const outcome of attemptEnds) retries.inc({ outcome }, 0);
  const gate = createSoloGate();
  return {
    worker,
    payloads,
    leaseMs: options.retryLeaseMs,
    batchSize: retryBatchSize,
    publish: broker === null ? null : createPublish(broker, metrics, options.publishTimeoutMs),
    unwritable: broker === null ? null : (topics, signal) => broker.unwritable(topics, signal),
    publishTimeoutMs: options.publishTimeoutMs,
    republishKey: options.republishKey,
    republishCompression: options.republishCompression,
    findHead: (id) => findHead(db, id),
    // Every attempt runs inside the gate, so a stop that waits for the gate's work waits for every attempt.
    gate: {
      together: (work) => running.track(gate.together(work)),
      alone: (work) => running.track(gate.alone(work)),
      isWanted: gate.isWanted,
    },
    stripFailureHeaders: (headers, dialect) => stripFailureHeaders(headers, dialect ?? 'none'),
    isDeadLetterTopic,
    isAllowedTarget: createTargetRule({ patterns: options.allowedTargets, isDeadLetterTopic }),
    routesOf(deadLetterTopic) {
      const question = { deadLetterTopic, rules: options.originalTopicRules, isDeadLetterTopic };
      return { unroutable: routeByRules(question), misnamed: routeByRulesOrName(question) };
    },
    onAttempt: (outcome) => retries.inc({ outcome }),
    onRetriedAll: (topic, result) => log.info({ topic, ...result }, 'retried topic'),
    onSettleRetry: (error) => log.warn({ err: error }, 'retrying settle'),
  };
}

function createMaintenance({ db, worker, wake, metrics, options }: DlqDeps, log: Logger): readonly Service[] {
  const archived = metrics.counter({ name: 'dlq_archived_total', help: 'Messages moved to the archive.' });
  const gauges = createGauges(worker, {
    name: 'dlq.gauges',
    ...messageGauges(metrics, db, { isArchiving: options.archive.enabled }),
    log,
  });
  const always = [
    gauges,
    createMessageIndexer(worker, wake, log),
    createRedriveRetention(worker, log),
    createGroupRetention(worker, log),
  ];
  if (!options.archive.enabled) return always;
  const onArchived = (count: number): void => archived.inc(count);
  return [...always, createMessageArchive(worker, { db, log, onArchived }, options.archive)];
}

function createReader(
  deps: DlqDeps & Readonly<{ broker: Broker; payloads: Payloads }>,
  log: Logger,
  isDeadLetterTopic: (topic: string) => boolean,
): PartitionReader {
  const { db, worker, broker, metrics, options } = deps;
  const counts = createIngestMetrics(metrics, deps.clock);
  const decode = createDecoder({ rules: options.originalTopicRules, isDeadLetterTopic });
  return createPartitionReader({
    db,
    worker,
    broker,
    payloads: deps.payloads,
    decode: removeAtIngest(options.removal, decode),
    maxRetries: options.maxRetries,
    makeId: createUuidMaker(deps.clock),
    storeFingerprints: createFingerprintStore(deps.clock),
    isDeadLetterTopic,
    namedTopics: options.topicPatterns.filter((pattern) => !/[*?]/.test(pattern)),
    group: options.consumerGroup,
    leaseMs: options.partitionLeaseMs,
    discoveryIntervalMs: options.discoveryIntervalMs,
    maxBytesInFlight: options.maxBytesInFlight,
    setCluster: (clusterId) => deps.replica.setKafkaCluster(clusterId),
    waitForChange: (ms, signal) => deps.wake.wait(partitionsChannel, ms, signal),
    onInserted: (topic, ids) => log.debug({ topic, message_ids: ids }, 'stored messages'),
    onRead: counts.read,
    onLeased: counts.leased,
    onIngested(topic, records, bytes) {
      counts.ingested(topic, records);
      log.info({ topic, records, bytes }, 'stored dead letters');
    },
    onStale: () => worker.onStale('dlq', 1),
    onTrouble(where, message) {
      const { topic, partition } = typeof where === 'string' ? { topic: where, partition: undefined } : where;
      log.warn({ topic, partition }, message);
    },
    onError: (what, error) => log.warn({ err: error }, `reading dead letters: ${what} failed`),
  });
}
