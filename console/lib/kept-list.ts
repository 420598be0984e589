import { keep, readKept } from './session-store.ts';

/** The list from which an item was opened, for the way to its neighbours and back. */
export type KeptList = Readonly<{ filter: string; ids: readonly string[] }>;

/** `name`: of the list, the same for `findNeighbours`. */
export function keepList(name: string, list: KeptList): void {
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

/** Null if the item was not opened from a list. */
export function findNeighbours(name: string, id: string): Neighbours | null {
  const text = readKept(name);
  if (text === null) return null;
  const { filter, ids } = JSON.parse(text) as KeptList;
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
