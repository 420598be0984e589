import type { Count, Keyset, Message, MessageFilter, MessageReader } from './ports.ts';

export type ListWindow =
  | Readonly<{ by: 'number'; offset: number; pageSize: number }>
  | Readonly<{ by: 'keyset'; after: Keyset | null; pageSize: number }>;

export type MessagePage = Readonly<{
  messages: readonly Message[];
  count: Count;
  hasNext: boolean;
}>;

/** One page, newest first, with the total. One row more than the page tells whether there is a next one. */
export async function listMessages(
  reader: MessageReader,
  filter: MessageFilter,
  window: ListWindow,
): Promise<MessagePage> {
  const count = await reader.count(filter);
  const offset = window.by === 'number' ? window.offset : 0;
  // Beyond the end there is nothing to skip to.
  if (offset >= count.total && window.by === 'number') return { messages: [], count, hasNext: false };
  const rows = await reader.list(filter, {
    limit: window.pageSize + 1,
    offset,
    after: window.by === 'keyset' ? window.after : null,
  });
  return { messages: rows.slice(0, window.pageSize), count, hasNext: rows.length > window.pageSize };
}
