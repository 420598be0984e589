import type { InboxDeps } from '../console/index.ts';
import { dlqForInbox } from '../dlq/index.ts';
import { jobsForInbox } from '../jobs/index.ts';
import { ordersForInbox } from '../outbox/index.ts';
import { sagasForInbox } from '../saga/index.ts';
import type { Parts } from './open-parts.ts';

/** What the slices give to the inbox. */
export function inboxOf({ protection }: Pick<Parts, 'protection'>): Pick<InboxDeps, 'parts' | 'masks'> {
  return {
    parts: [...dlqForInbox, ordersForInbox, jobsForInbox, sagasForInbox],
    masks: {
      dlq: protection.ofAny('topics'),
      outbox: protection.ofAny('destinations'),
      jobs: protection.ofAny('queues'),
      saga: protection.ofAny('workflows'),
      system: protection.ofEverything(),
    },
  };
}
