/**
 * Where a value stands, as errors show it: `outbox.destinations.broker.url`. A key that a user chose may hold
 * anything, so one with more than letters, digits, `_` and `-` stands in quotes, and no two paths look alike:
 * `outbox.destinations["eu.broker"].url`.
 */
const PLAIN_KEY = /^[\w-]+$/;
const LAST_STEP = /(?:\.[\w-]+|\[(?:\d+|"(?:[^"\\]|\\.)*")\])$/;

/** The parent of a key at the top is empty. */
export function childPath(parent: string, key: string): string {
  if (!PLAIN_KEY.test(key)) return `${parent}[${JSON.stringify(key)}]`;
  return parent === '' ? key : `${parent}.${key}`;
}

/** Without the last key or index; the path itself where there is only one key. */
export const parentPath = (path: string): string => path.replace(LAST_STEP, '');

export const isBelow = (path: string, parent: string): boolean =>
  path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`);
