import { compileGlobs } from '../../kernel/glob/match-glob.ts';
import type { Check } from '../check.ts';
import type { AutoRetryValues } from '../sections/auto-retry.ts';
import type { Settings } from '../schema.ts';
import type { KafkaConfig } from './resolve-kafka.ts';

export type RetryPolicyConfig = Omit<AutoRetryValues, 'maxAttempts' | 'rate'> &
  Readonly<{ maxAttempts: number; ratePerSecond: number }>;

export type DlqConfig = Omit<Settings['dlq'], 'autoRetry'> &
  Readonly<{ autoRetry: readonly RetryPolicyConfig[] }>;

export function resolveDlq(
  { autoRetry, ...dlq }: Settings['dlq'],
  kafka: KafkaConfig,
  check: Check,
): DlqConfig {
  // With a shorter lease two processes could publish the same message.
  if (dlq.retryLeaseMs <= kafka.publishTimeoutMs)
    check.report(['dlq.retry_lease', 'kafka.publish_timeout'], 'must be longer than kafka.publish_timeout');
  if (dlq.archive.purgeDays < dlq.archive.retentionDays)
    check.report(
      ['dlq.archive.purge_days', 'dlq.archive.retention_days'],
      'must not be less than dlq.archive.retention_days',
    );
  // Without a broker a retry resolves a message that was not sent. A person may want that, a timer must not.
  if (autoRetry.length > 0 && !kafka.enabled)
    check.report(
      ['dlq.auto_retry', 'kafka.enabled'],
      'needs Kafka; set kafka.brokers, or remove the policies',
    );
  const isDeadLetterTopic = compileGlobs(kafka.dlqTopicPattern);
  const names = autoRetry.map(({ name }) => name);
  return {
    ...dlq,
    autoRetry: autoRetry.map(({ rate, ...policy }, index) => {
      const path = `dlq.auto_retry[${index}]`;
      const first = names.indexOf(policy.name);
      if (first < index)
        check.report(
          [`${path}.name`],
          `${policy.name} is also the name of dlq.auto_retry[${first}]: give each a name of its own`,
        );
      // Every star as a letter: `orders.*` is a topic, `*.dlq` a dead-letter topic.
      const deadLetters = policy.topics.findIndex((pattern) =>
        isDeadLetterTopic(pattern.replaceAll('*', 'x')),
      );
      if (deadLetters >= 0)
        check.report(
          [`${path}.topics[${deadLetters}]`, 'kafka.dlq_topic_pattern'],
          'matches dead-letter topics; name the original topics, to which messages are sent',
        );
      const { maxAttempts = dlq.maxRetries } = policy;
      if (maxAttempts > dlq.maxRetries)
        check.report([`${path}.max_attempts`, 'dlq.max_retries'], 'must not be more than dlq.max_retries');
      return { ...policy, maxAttempts, ratePerSecond: rate };
    }),
  };
}
