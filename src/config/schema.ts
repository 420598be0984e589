import { cronSchedule } from './formats/cron-format.ts';
import { destinations } from './formats/destination-formats.ts';
import {
  decimal,
  duration,
  filePath,
  flag,
  listOf,
  oneOf,
  secret,
  text,
  wholeNumber,
} from './formats/format.ts';
import { databaseHost, host, hostAndPort, webUrl } from './formats/host-format.ts';
import { cronJobs, queues } from './formats/jobs-formats.ts';
import { notifiers, publicUrl } from './formats/notify-formats.ts';
import { services } from './formats/services-formats.ts';
import { optional, withDefault, type Section, type Values } from './setting.ts';
import { originalTopicRule, topicGlob, topicName } from './formats/topic-format.ts';

const MIB = 1024 * 1024;

const name = (): ReturnType<typeof text> =>
  text('1 to 249 letters, digits, dots, hyphens or underscores', (value) => /^[\w.-]{1,249}$/.test(value));

const app = {
  name: withDefault(name(), 'redrive'),
  /** Default: the version of this package. */
  version: optional(name()),
  tier: optional(name()),
  /** Part of a file name, because it selects the second file. */
  environment: withDefault(
    text('letters, digits, hyphens or underscores', (value) => /^[\w-]{1,63}$/.test(value)),
    'dev',
  ),
} satisfies Section;

const server = {
  host: withDefault(host(), '127.0.0.1'),
  port: withDefault(wholeNumber(0, 65_535), 8080),
  allow_unauthenticated: withDefault(flag(), false),
  /** Additional host names of this server. Requests with other names are rejected. */
  allowed_hosts: withDefault(listOf(host()), []),
  body_limit_bytes: withDefault(wholeNumber(1024, 256 * MIB), MIB),
  /** For links in notifications. */
  public_url: optional(publicUrl()),
} satisfies Section;

const database = {
  /** The whole connection; the keys below override its parts. */
  url: optional(secret()),
  host: optional(databaseHost()),
  port: withDefault(wholeNumber(1, 65_535), 5432),
  name: withDefault(text('1 to 63 characters', hasLength(63)), 'redrive'),
  user: withDefault(text('1 to 255 characters', hasLength(255)), 'app'),
  password: withDefault(secret(), ''),
  ssl_mode: withDefault(oneOf('disable', 'require', 'verify-ca', 'verify-full'), 'disable'),
  ssl_ca: optional(filePath()),
  max_open_conns: withDefault(wholeNumber(1, 10_000), 25),
  max_idle_conns: withDefault(wholeNumber(0, 10_000), 5),
  conn_max_lifetime: withDefault(duration('1s', '7d'), '5m'),
  statement_timeout: withDefault(duration('100ms', '1h'), '30s'),
  direct_url: optional(secret()),
  migrate: withDefault(flag(), true),
  wake: withDefault(oneOf('listen', 'poll'), 'listen'),
  data_dir: withDefault(filePath(), '.redrive/postgres'),
} satisfies Section;

const kafka = {
  /** Default: true if there are brokers or the local one. */
  enabled: optional(flag()),
  local: withDefault(flag(), false),
  brokers: withDefault(listOf(hostAndPort()), []),
  consumer_group: withDefault(name(), 'dlq-manager.default'),
  security_protocol: withDefault(oneOf('PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'), 'PLAINTEXT'),
  sasl: {
    mechanism: withDefault(oneOf('PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'), 'SCRAM-SHA-512'),
    username: optional(text()),
    password: optional(secret()),
  },
  tls: {
    ca: optional(filePath()),
    cert: optional(filePath()),
    key: optional(filePath()),
  },
  dlq_topic_pattern: withDefault(listOf(topicGlob(), { min: 1, single: true }), ['*.dlq.v1', '*.dlq']),
  fetch_max_bytes_in_flight: withDefault(wholeNumber(MIB, 4096 * MIB), 64 * MIB),
  discovery_interval: withDefault(duration('1s', '1h'), '30s'),
  publish_timeout: withDefault(duration('100ms', '5m'), '5s'),
} satisfies Section;

const dlq = {
  max_retries: withDefault(wholeNumber(1, 1000), 3),
  retry_lease: withDefault(duration('1s', '1h'), '30s'),
  republish_key: withDefault(oneOf('original', 'uuid'), 'original'),
  republish_compression: withDefault(oneOf('source', 'none', 'gzip', 'snappy', 'lz4', 'zstd'), 'source'),
  /** Default: all topics but dead-letter topics and internal ones. */
  allowed_targets: optional(listOf(topicGlob(), { min: 1 })),
  original_topic_rules: withDefault(listOf(originalTopicRule()), []),
  partition_lease: withDefault(duration('3s', '10m'), '15s'),
  open_transaction_alert: withDefault(duration('1s', '30d'), '5m'),
  archive: {
    enabled: withDefault(flag(), true),
    retention_days: withDefault(wholeNumber(1, 36_500), 30),
    purge_days: withDefault(wholeNumber(1, 36_500), 365),
    schedule: withDefault(cronSchedule(), '0 2 * * *'),
  },
} satisfies Section;

const outbox = {
  batch_size: withDefault(wholeNumber(1, 10_000), 32),
  parallelism: withDefault(wholeNumber(1, 100), 4),
  retry_max: withDefault(wholeNumber(0, 1000), 8),
  idle_sleep_ms: withDefault(wholeNumber(1, 60_000), 200),
  stuck_threshold_min: withDefault(decimal(0.001, 1440), 10),
  ledger_ttl: withDefault(duration('1s', '3650d'), '48h'),
  audit_retention: withDefault(duration('1d', '36500d'), '400d'),
  max_age: withDefault(duration('1s', '365d'), '24h'),
  backoff: {
    initial_ms: withDefault(wholeNumber(1, 3_600_000), 2000),
    max_ms: withDefault(wholeNumber(1, 86_400_000), 256_000),
    jitter: withDefault(decimal(0, 1), 0.1),
  },
  probe: {
    initial_ms: withDefault(wholeNumber(1, 3_600_000), 5000),
    max_ms: withDefault(wholeNumber(1, 3_600_000), 60_000),
  },
  destinations: withDefault(destinations(), {}),
} satisfies Section;

const jobs = {
  /** Of completed jobs, and of dead ones. */
  retention: withDefault(duration('1m', '36500d'), '7d'),
  dead_retention: withDefault(duration('1m', '36500d'), '90d'),
  queues: withDefault(queues(), {}),
  cron: withDefault(cronJobs(), {}),
} satisfies Section;

/** Who is notified when something needs attention. */
const notify = withDefault(notifiers(), []);

const saga = {
  workflow_dir: withDefault(filePath(), 'workflows'),
  /** Maximum of concurrent calls in one process. */
  max_concurrent: withDefault(wholeNumber(1, 100_000), 100),
  lease_secs: withDefault(wholeNumber(3, 3600), 15),
  events_topic: withDefault(topicName(), 'redrive.saga.state_changed.v1'),
  retention: withDefault(duration('1h', '36500d'), '30d'),
  archive_retention: withDefault(duration('1h', '36500d'), '400d'),
  /** Sagas that are stuck because of an outage continue when the service is back. */
  auto_resume: withDefault(flag(), true),
} satisfies Section;

const telemetry = {
  otlp_endpoint: optional(webUrl()),
  log_level: withDefault(oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'), 'info'),
} satisfies Section;

const roles = withDefault(listOf(oneOf('api', 'ingest', 'workers'), { min: 1, single: true }), [
  'api',
  'ingest',
  'workers',
]);

/**
 * All keys. A new section is one more constant here; files, environment variables, defaults, types and suggestions follow
 * from it.
 */
export const schema = {
  app,
  server,
  database,
  kafka,
  roles,
  dlq,
  outbox,
  jobs,
  notify,
  saga,
  services: withDefault(services(), {}),
  telemetry,
} satisfies Section;

export type Settings = Values<typeof schema>;

function hasLength(max: number): (value: string) => boolean {
  return (value) => value.length >= 1 && value.length <= max;
}
