import type { Check } from '../check.ts';
import { reasonAgainstHeaderValue } from '../formats/header-format.ts';
import { childPath } from '../key-path.ts';
import { openSecret, type SecretValue } from '../layers/secret-value.ts';
import { contentsOf, type TlsFiles } from '../layers/tls-files.ts';

/** Header values as functions, because one may come from a file that changes, and because none may show up in a log. */
export function resolveHeaders(
  path: string,
  headers: Readonly<Record<string, SecretValue>>,
  check: Check,
): Readonly<Record<string, () => string>> {
  const opened = Object.entries(headers).flatMap(([header, value]) => {
    const found = openSecret(value, reasonAgainstHeaderValue);
    if (found.ok) return [[header, found.value] as const];
    check.report([`${childPath(`${path}.headers`, header)}${found.at}`], found.reason);
    return [];
  });
  return Object.fromEntries(opened);
}

export function resolveTls(
  path: string,
  { urls, files, urlKey = 'url' }: Readonly<{ urls: readonly string[]; files: TlsFiles; urlKey?: string }>,
  check: Check,
): TlsFiles | undefined {
  const { ca, cert, key } = files;
  if (ca === undefined && cert === undefined && key === undefined) return undefined;
  if (!urls.some((each) => /^https:/i.test(each)))
    check.warn(`${path}.tls is not used: ${path}.${urlKey} begins with http:`);
  return openTls(path, files, check);
}

/** Of a connection that is encrypted in any case. */
export function openTls(path: string, files: TlsFiles, check: Check): TlsFiles {
  const { ca, cert, key } = files;
  check.checkFile(`${path}.tls.ca`, ca);
  check.checkFile(`${path}.tls.cert`, cert);
  check.checkFile(`${path}.tls.key`, key);
  if (cert !== undefined && key === undefined)
    check.report([`${path}.tls.key`, `${path}.tls.cert`], `is missing, but ${path}.tls.cert is set`);
  if (key !== undefined && cert === undefined)
    check.report([`${path}.tls.cert`, `${path}.tls.key`], `is missing, but ${path}.tls.key is set`);
  return contentsOf(files);
}
