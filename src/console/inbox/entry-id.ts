import { createHash } from 'node:crypto';
import { inboxKinds, type InboxGroup, type InboxKind } from '../../kernel/inbox/inbox-group.ts';

/** Of an entry: its kind, and a hash of what its items have in common. The same as long as there are such items. */
export function entryId({ kind, key }: Pick<InboxGroup, 'kind' | 'key'>): string {
  const hash = createHash('sha256').update(JSON.stringify(key)).digest('base64url');
  return `${kind}.${hash.slice(0, 32)}`;
}

export const ENTRY_ID_PATTERN = `^(${inboxKinds.join('|')})\\.[A-Za-z0-9_-]{32}$`;

/** Null for what is no id. */
export function kindOfEntry(id: string): InboxKind | null {
  if (!new RegExp(ENTRY_ID_PATTERN).test(id)) return null;
  return inboxKinds.find((kind) => id.startsWith(`${kind}.`)) ?? null;
}
