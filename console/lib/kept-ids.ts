import { readKept, keep } from './session-store.ts';

/**
 * Ids that were chosen in a list, on their way to a plan: too many for an address. They are kept in the tab, so that a
 * reload and the way back work.
 */
export function keepIds(ids: readonly string[]): string {
  const key = `chosen-${crypto.randomUUID()}`;
  keep(key, JSON.stringify(ids));
  return key;
}

/** Null if the tab does not have them any more. */
export function readKeptIds(key: string): readonly string[] | null {
  const text = readKept(key);
  if (text === null) return null;
  const ids: unknown = JSON.parse(text);
  return Array.isArray(ids) ? ids.map(String) : null;
}
