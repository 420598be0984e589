import type { PageFacts } from './page-facts.ts';

/** What the server accepts; a longer address keeps its page and loses its filter. */
const maxPathLength = 2000;

/** The login that leads back to the place where the user is. Paths in `return_to` are below the prefix. */
export function loginAddress(
  { login, prefix }: PageFacts,
  { pathname, search, hash = '' }: Readonly<{ pathname: string; search: string; hash?: string }>,
): string {
  const isBelow = pathname === prefix || pathname.startsWith(`${prefix}/`);
  const path = isBelow ? pathname.slice(prefix.length) || '/' : pathname;
  const whole = path + search + hash;
  const returnTo = whole.length > maxPathLength ? path : whole;
  return `${login ?? ''}?return_to=${encodeURIComponent(returnTo)}`;
}
