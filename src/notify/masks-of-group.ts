import type { Dimension } from '../kernel/access/scope.ts';
import type { Masks, Protection } from '../kernel/protect/protection.ts';
import type { GroupName } from './grouping.ts';

/** What the subjects of a slice's events are. */
const dimensions: Readonly<Record<string, Dimension>> = {
  outbox: 'destinations',
  jobs: 'queues',
  saga: 'workflows',
};

/** Of a dead letter an event names one topic, and the rules of the other count as well. */
export function masksOfGroup(protection: Protection, { slice, subject }: GroupName): Masks {
  if (slice === 'dlq') return protection.ofAny('topics');
  const dimension = Object.hasOwn(dimensions, slice) ? dimensions[slice] : undefined;
  return dimension === undefined ? protection.ofEverything() : protection.of(dimension, [subject]);
}
