import { createHash } from 'node:crypto';
import type { InboxGroup } from '../../kernel/inbox/inbox-group.ts';

/** Of an entry: its kind, and a hash of what its items have in common. The same as long as there are such items. */
export function entryId({ kind, key }: Pick<InboxGroup, 'kind' | 'key'>): string {
  const hash = createHash('sha256').update(JSON.stringify(key)).digest('base64url');
  return `${kind}.${hash.slice(0, 32)}`;
}
