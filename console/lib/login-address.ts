import type { PageFacts } from './page-facts.ts';

/** The login that leads back to the place where the user is. Paths in `return_to` are below the prefix. */
export function loginAddress(
  { login, prefix }: PageFacts,
  here: Readonly<{ pathname: string; search: string }>,
): string {
  const path = here.pathname.startsWith(prefix) ? here.pathname.slice(prefix.length) : here.pathname;
  return `${login ?? ''}?return_to=${encodeURIComponent(path + here.search)}`;
}
