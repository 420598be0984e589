import type { InboxPart } from '../../../platform/work/inbox-part.ts';
import { messagesForInbox } from './messages-for-inbox.ts';
import { redrivesForInbox } from './redrives-for-inbox.ts';
import { sourcesForInbox } from './sources-for-inbox.ts';

/** What the slice gives to the inbox. */
export const dlqForInbox: readonly InboxPart[] = [messagesForInbox, redrivesForInbox, sourcesForInbox];
