import type { InboxPart } from '../../../platform/work/inbox-part.ts';
import { nothing } from '../../../platform/work/inbox-part.ts';
import { listMessageGroups, listUnroutable, messageSamples, messageTrends } from './list-message-groups.ts';

/** What dead letters give to the inbox. */
export const messagesForInbox: InboxPart = {
  slice: 'dlq',
  kinds: {
    messages: { permission: 'dlq:messages:view', dimension: 'topics' },
    unroutable: { permission: 'dlq:messages:view', dimension: 'topics' },
  },
  async read(db, asked) {
    const [messages, unroutable] = [asked.get('messages'), asked.get('unroutable')];
    const found = messages === undefined ? nothing : await listMessageGroups(db, messages);
    const more = unroutable === undefined ? [] : await listUnroutable(db, unroutable);
    return { groups: [...found.groups, ...more], isPartial: found.isPartial };
  },
  trends: messageTrends,
  samples: messageSamples,
};
