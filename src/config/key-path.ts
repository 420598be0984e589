/**
 * Where a value stands, as errors show it: `outbox.destinations.broker.url`. A key that a user chose may hold
 * anything, so one with more than letters, digits, `_` and `-` stands in quotes, and no two paths look alike:
 * `outbox.destinations["eu.broker"].url`.
 */
const PLAIN_KEY = /^[\w-]+$/;
const STEP = /\.([\w-]+)|\[("(?:[^"\\]|\\.)*")\]/g;
const LAST_STEP = /(?:\.[\w-]+|\[(?:\d+|"(?:[^"\\]|\\.)*")\])$/;

export const childPath = (parent: string, key: string): string =>
  PLAIN_KEY.test(key) ? `${parent}.${key}` : `${parent}[${JSON.stringify(key)}]`;

/** Without the last key or index; the path itself where there is only one key. */
export const parentPath = (path: string): string => path.replace(LAST_STEP, '');

export const isBelow = (path: string, parent: string): boolean =>
  path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`);

/** The keys that lead from the parent to a path below it. */
export function keysBetween(parent: string, path: string): readonly string[] {
  return [...path.slice(parent.length).matchAll(STEP)].map(
    ([, plain, quoted = '""']) => plain ?? (JSON.parse(quoted) as string),
  );
}
