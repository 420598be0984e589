import { retryPolicies } from './auto-retry.ts';
import { cronSchedule } from '../formats/cron-format.ts';
import { originalTopicRule, topicGlob } from '../formats/topic-format.ts';
import { duration, flag, listOf, oneOf, optional, section, wholeNumber } from '../formats/value.ts';

export const dlq = section({
  max_retries: wholeNumber(1, 1000, {
    default: 3,
    description: 'retries per message; stored with each message when it is ingested',
  }),
  retry_lease: duration('1s', '1h', {
    default: '30s',
    description: 'lease of a retry; longer than `kafka.publish_timeout`',
  }),
  republish_key: oneOf(['original', 'uuid'], {
    default: 'original',
    description: 'key of republished records; `uuid`: a new key for each attempt',
  }),
  republish_compression: oneOf(['source', 'none', 'gzip', 'snappy', 'lz4', 'zstd'], {
    default: 'source',
    description:
      'codec of republished records: `source` (the codec of the original record), `none`, `gzip`, `snappy`, `lz4`, `zstd`',
  }),
  original_topic_rules: listOf(originalTopicRule(), {
    default: [],
    examples: [
      [
        { match: '*.failed', topic: '*' },
        { match: 'legacy-dead', topic: 'orders.v1' },
      ],
    ],
    description:
      "where a dead letter belongs when neither its headers nor the usual names (`orders.dlq`, `orders.dlq.v1`) tell: `{ match: '*.failed', topic: '*' }`; the first match applies",
  }),
  allowed_targets: optional(
    listOf(topicGlob(), {
      minItems: 1,
      examples: [['orders.*', 'payments.*']],
      description:
        "patterns of topics to which messages may be published: `['orders.*', 'payments.*']`. Without it, every topic is allowed except dead-letter topics and names that start with `__`. A header of a record may choose the topic, so set this in production",
    }),
  ),
  auto_retry: retryPolicies({
    description:
      'policies that retry dead letters automatically; the first one that matches a message retries it. Off by default',
  }),
  redrive: section({
    max_without_approval: wholeNumber(1, 1_000_000, {
      default: 1000,
      description:
        'messages that a person may send or decide about in bulk within an hour without the approval of a second person; holds with authentication',
    }),
  }),
  partition_lease: duration('3s', '10m', {
    default: '15s',
    description: 'how long the partitions of a crashed replica stay leased',
  }),
  open_transaction_alert: duration('1s', '30d', {
    default: '5m',
    description: '`/readyz` is degraded when an open Kafka transaction blocks reading for longer',
  }),
  archive: section({
    enabled: flag({
      default: true,
      description: 'archive on a schedule; `redrive dlq archive` works either way',
    }),
    retention_days: wholeNumber(1, 36_500, {
      default: 30,
      description: 'days since the last change of a message until it is archived',
    }),
    purge_days: wholeNumber(1, 36_500, {
      default: 365,
      description:
        'days since the last change of a message until it is deleted; not less than `retention_days`',
    }),
    schedule: cronSchedule({
      default: '0 2 * * *',
      description: 'cron schedule in UTC: minute, hour, day, month, weekday',
    }),
  }),
});
