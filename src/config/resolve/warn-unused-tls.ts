import type { Check } from '../check.ts';

export function warnUnusedTls(
  path: string,
  { urls, tls, urlKey = 'url' }: Readonly<{ urls: readonly string[]; tls: unknown; urlKey?: string }>,
  { warn }: Check,
): void {
  if (tls !== undefined && !urls.some((each) => /^https:/i.test(each)))
    warn(`${path}.tls is not used: ${path}.${urlKey} begins with http:`);
}
