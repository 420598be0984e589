import { keep, readKept } from '../../../lib/session-store.ts';

/** The list from which a message was opened, for the way to its neighbours and back. */
export type MessageList = Readonly<{ filter: string; ids: readonly string[] }>;

const name = 'message-list';

export function keepMessageList(list: MessageList): void {
  keep(name, JSON.stringify(list));
}

export type Neighbours = Readonly<{
  filter: string;
  /** From 1. */
  place: number;
  count: number;
  previous: string | null;
  next: string | null;
}>;

/** Null if the message was not opened from a list. */
export function findNeighbours(id: string): Neighbours | null {
  const text = readKept(name);
  if (text === null) return null;
  const { filter, ids } = JSON.parse(text) as MessageList;
  const at = ids.indexOf(id);
  if (at < 0) return null;
  return {
    filter,
    place: at + 1,
    count: ids.length,
    previous: ids[at - 1] ?? null,
    next: ids[at + 1] ?? null,
  };
}
