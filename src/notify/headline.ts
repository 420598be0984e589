import type { GroupName, Notice } from './grouping.ts';

type Words = Readonly<{ thing: string; at: string; one: string; many: string }>;

const happened = 'had been resolved, but the effect has happened';

/** By slice and kind. */
const words: Readonly<Record<string, Words>> = {
  'dlq dead': { thing: 'message', at: 'of topic', one: 'is DEAD', many: 'are DEAD' },
  'dlq redrive_finished': { thing: 'redrive', at: 'with id', one: 'has finished', many: 'have finished' },
  'dlq redrive_stopped': { thing: 'redrive', at: 'with id', one: 'has stopped', many: 'have stopped' },
  'dlq policy_disabled': { thing: 'retry policy', at: 'named', one: 'is disabled', many: 'are disabled' },
  'outbox dead': { thing: 'order', at: 'to', one: 'is dead', many: 'are dead' },
  'outbox late_success': { thing: 'order', at: 'to', one: happened, many: happened },
  'jobs dead_letter': { thing: 'job', at: 'of queue', one: 'is in dead_letter', many: 'are in dead_letter' },
  'saga stuck': { thing: 'saga', at: 'of workflow', one: 'needs attention', many: 'need attention' },
};

/** `3 more orders to broker are dead`; unknown kinds get a generic headline. */
export function headline({ slice, kind, subject }: GroupName, { count, isSummary }: Notice): string {
  const known = `${slice} ${kind}`;
  const say = Object.hasOwn(words, known) ? words[known] : undefined;
  const number = isSummary ? `${count} more` : String(count);
  if (say === undefined) return `${number} x ${slice} ${kind}: ${subject}`;
  return count === 1
    ? `${number} ${say.thing} ${say.at} ${subject} ${say.one}`
    : `${number} ${say.thing}s ${say.at} ${subject} ${say.many}`;
}
