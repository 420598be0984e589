import { captureTopicGlob, isLegalTopic } from './topic-glob.ts';

/** Topics that match `match` belong to `topic`, whose stars stand for what the stars of `match` caught, in order. */
export type OriginalTopicRule = Readonly<{ match: string; topic: string }>;

export type OriginalTopic = Readonly<{
  /** Where the message belongs; the topic it was read from when that is unknown. */
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
    /** What the headers tell, unchecked. */
    told: string | undefined;
    sourceTopic: string;
  }>;

/**
 * Where a dead letter belongs: as its headers tell, else by the first rule that matches, else by its topic's
 * name. Headers that tell what is no topic's name are not trusted with a guess: such a message waits for a rule.
 * The answer is never a topic of dead letters, or a message could be re-driven in a circle without ever meeting
 * its consumer.
 */
export function resolveOriginalTopic(question: OriginalTopicQuestion): OriginalTopic {
  const { told, sourceTopic } = question;
  const routing = { ...question, deadLetterTopic: sourceTopic };
  const unroutable: OriginalTopic = { topic: sourceTopic, unroutable: true, by: 'none' };
  if (told !== undefined) {
    if (!isLegalTopic(told)) return unroutable;
    if (isTarget(told, routing)) return { topic: told, unroutable: false, by: 'headers' };
  }
  const topic = routeByRulesOrName(routing);
  if (topic === null) return unroutable;
  return { topic, unroutable: false, by: routeByRules(routing) === null ? 'naming' : 'rule' };
}

/** A rule is an operator's word: the first that matches decides, even if it leads nowhere. */
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
