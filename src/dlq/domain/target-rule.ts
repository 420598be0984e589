import { compileGlobs } from '../../kernel/glob/match-glob.ts';
import { isLegalTopic } from './legal-topic.ts';

/** Whether messages may be published to a topic. */
export type IsAllowedTarget = (topic: string) => boolean;

/**
 * A message's target may come from a header, so anybody who can write a dead letter could choose where we publish. The
 * patterns restrict that. Without patterns every topic is allowed, except dead-letter topics and internal ones.
 */
export function createTargetRule({
  patterns,
  isDeadLetterTopic,
}: Readonly<{
  patterns: readonly string[] | undefined;
  isDeadLetterTopic: (topic: string) => boolean;
}>): IsAllowedTarget {
  const isListed = patterns === undefined ? () => true : compileGlobs(patterns);
  return (topic) => isLegalTopic(topic) && !isDeadLetterTopic(topic) && isListed(topic);
}
