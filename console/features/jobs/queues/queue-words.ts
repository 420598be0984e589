import type { Queue } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import type { StatusRole } from '../../../lib/status/status-roles.ts';

type Status = keyof Queue['counts'];

/** A count, with a sign if it is an estimate. */
export function countText({ counts, estimated_counts: estimated = [] }: Queue, status: Status): string {
  return `${estimated.includes(status) ? '~' : ''}${formatCount(counts[status])}`;
}

/** What stands in the way of a queue's jobs, the worst first: a word of the status roles. */
export function stateOf({ paused, target_down: down }: Queue): 'paused' | 'open' | 'running' {
  return paused ? 'paused' : down === null ? 'running' : 'open';
}

const depth: readonly (readonly [Status, StatusRole])[] = [
  ['running', 'working'],
  ['pending', 'queued'],
  ['failed', 'retry'],
  ['dead_letter', 'attention'],
];

/** What is in the queue now; completed jobs are not. Dead letters count while nobody has dealt with them. */
export function depthOf(
  queue: Queue,
): readonly Readonly<{ label: Status; value: number; role: StatusRole }>[] {
  return depth.map(([label, role]) => ({
    label,
    value: label === 'dead_letter' ? queue.unresolved : queue.counts[label],
    role,
  }));
}
