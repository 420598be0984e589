import { captureTopicGlob, isLegalTopic } from './topic-glob.ts';

/** Topics that match `match` belong to `topic`, whose stars stand for what the stars of `match` caught, in order. */
export type OriginalTopicRule = Readonly<{ match: string; topic: string }>;

export type OriginalTopic = Readonly<{
  /** Where the message belongs; the topic it was read from when that is unknown. */
  topic: string;
  unroutable: boolean;
  by: 'headers' | 'rule' | 'naming' | 'none';
}>;

export type OriginalTopicQuestion = Readonly<{
  /** What the headers tell, unchecked. */
  told: string | undefined;
  sourceTopic: string;
  rules: readonly OriginalTopicRule[];
  isDeadLetterTopic: (topic: string) => boolean;
}>;

/**
 * Where a dead letter belongs: as its headers tell, else by the first rule that matches, else by its topic's
 * name. A rule is an operator's word: where it leads nowhere, nothing else is guessed. The answer is never a
 * topic of dead letters, or a message could be re-driven in a circle without ever meeting its consumer.
 */
export function resolveOriginalTopic(question: OriginalTopicQuestion): OriginalTopic {
  const { told, sourceTopic, rules } = question;
  if (told !== undefined && isTarget(told, question))
    return { topic: told, unroutable: false, by: 'headers' };
  const ruled = byRule(sourceTopic, rules);
  const topic = ruled ?? byNaming(sourceTopic);
  if (topic === undefined || !isTarget(topic, question))
    return { topic: sourceTopic, unroutable: true, by: 'none' };
  return { topic, unroutable: false, by: ruled === undefined ? 'naming' : 'rule' };
}

function isTarget(topic: string, { sourceTopic, isDeadLetterTopic }: OriginalTopicQuestion): boolean {
  return isLegalTopic(topic) && topic !== sourceTopic && !isDeadLetterTopic(topic);
}

function byRule(sourceTopic: string, rules: readonly OriginalTopicRule[]): string | undefined {
  for (const { match, topic } of rules) {
    const caught = captureTopicGlob(match, sourceTopic);
    if (caught === undefined) continue;
    let star = 0;
    return topic.replaceAll('*', () => caught[star++] ?? '*');
  }
  return undefined;
}

/** `X.dlq` and `X.dlq.v1` are the names we propose, `X-dlt` and `X.DLT` are Spring's. */
function byNaming(sourceTopic: string): string | undefined {
  const dlq = /^(.+)\.dlq(\.v\d+)?$/.exec(sourceTopic);
  if (dlq !== null) return `${dlq[1] ?? ''}${dlq[2] ?? ''}`;
  return /^(.+)(?:-dlt|\.DLT)$/.exec(sourceTopic)?.[1];
}
