import { captureGlob } from '../../kernel/glob/match-glob.ts';
import { isLegalTopic } from './legal-topic.ts';

/** Maps topics that match `match` to `topic`, whose stars are replaced by what the stars of `match` matched, in order. */
export type OriginalTopicRule = Readonly<{ match: string; topic: string }>;

export type OriginalTopic = Readonly<{
  /** Where the message belongs; the topic it was read from if that is unknown. */
  topic: string;
  unroutable: boolean;
  by: 'headers' | 'rule' | 'naming' | 'none';
}>;

export type RouteQuestion = Readonly<{
  deadLetterTopic: string;
  rules: readonly OriginalTopicRule[];
  isDeadLetterTopic: (topic: string) => boolean;
}>;

export type OriginalTopicQuestion = Omit<RouteQuestion, 'deadLetterTopic'> &
  Readonly<{
    /** From the headers, unchecked. */
    headerTopic: string | undefined;
    sourceTopic: string;
  }>;

/**
 * Where a dead letter belongs: the topic in its headers, else by the first matching rule, else by the name of its
 * topic. If the header has an illegal topic name, the message is unroutable until a rule matches. The result is never
 * a dead-letter topic: a message could be retried in a loop without ever reaching its consumer.
 */
export function resolveOriginalTopic(question: OriginalTopicQuestion): OriginalTopic {
  const { headerTopic, sourceTopic } = question;
  const routing = { ...question, deadLetterTopic: sourceTopic };
  const unroutable: OriginalTopic = { topic: sourceTopic, unroutable: true, by: 'none' };
  if (headerTopic !== undefined) {
    if (!isLegalTopic(headerTopic)) return unroutable;
    if (isTarget(headerTopic, routing)) return { topic: headerTopic, unroutable: false, by: 'headers' };
  }
  const topic = routeByRulesOrName(routing);
  if (topic === null) return unroutable;
  return { topic, unroutable: false, by: routeByRules(routing) === null ? 'naming' : 'rule' };
}

/** The first matching rule decides, even if its topic is not a valid target. */
export function routeByRules(question: RouteQuestion): string | null {
  const topic = byRule(question.deadLetterTopic, question.rules);
  return topic !== undefined && isTarget(topic, question) ? topic : null;
}

export function routeByRulesOrName(question: RouteQuestion): string | null {
  const topic = byRule(question.deadLetterTopic, question.rules) ?? byNaming(question.deadLetterTopic);
  return topic !== undefined && isTarget(topic, question) ? topic : null;
}

function isTarget(topic: string, { deadLetterTopic, isDeadLetterTopic }: RouteQuestion): boolean {
  return isLegalTopic(topic) && topic !== deadLetterTopic && !isDeadLetterTopic(topic);
}

function byRule(sourceTopic: string, rules: readonly OriginalTopicRule[]): string | undefined {
  for (const { match, topic } of rules) {
    const captured = captureGlob(match, sourceTopic);
    if (captured === undefined) continue;
    let star = 0;
    return topic.replaceAll('*', () => captured[star++] ?? '*');
  }
  return undefined;
}

/** `X.dlq` and `X.dlq.v1` are the names we recommend, `X-dlt` and `X.DLT` are Spring's. */
function byNaming(sourceTopic: string): string | undefined {
  const dlq = /^(.+)\.dlq(\.v\d+)?$/.exec(sourceTopic);
  if (dlq !== null) return `${dlq[1] ?? ''}${dlq[2] ?? ''}`;
  return /^(.+)(?:-dlt|\.DLT)$/.exec(sourceTopic)?.[1];
}
