import { parseSearchParams, printSearchParams, type SearchParams } from './search-params.ts';

/** A place in the console, as links take it. */
export type LocalPlace = Readonly<{ to: string; search: SearchParams }>;

/** What of an address is a view: the list with its filter, without the preview that is open beside it. */
export function viewAddress(pathname: string, search: Readonly<Record<string, unknown>>): string {
  const { peek: _, ...kept } = search;
  return pathname + printSearchParams(kept);
}

/** Null for an address that leads out of the console: what is stored or sent is not trusted to stay inside. */
export function readLocalPlace(address: string): LocalPlace | null {
  if (!/^\/(?![/\\])/.test(address) || /[\p{Cc}\\]/u.test(address)) return null;
  const [path = '', ...rest] = address.split('#', 1)[0]?.split('?') ?? [];
  return { to: path, search: parseSearchParams(rest.join('?')) };
}

/** Whether a view is of the list on the page. */
export function isViewOf(address: string, pathname: string): boolean {
  return readLocalPlace(address)?.to === pathname;
}
