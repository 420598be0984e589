import { readFileSync } from 'node:fs';

export type TlsFiles = Readonly<{
  ca: string | undefined;
  cert: string | undefined;
  key: string | undefined;
}>;

/**
 * What the PEM files hold, under the same keys, read when it is asked for. Whatever shows a configuration shows no
 * private key: the getters when it is inspected, the paths in JSON.
 */
export function contentsOf(files: TlsFiles): TlsFiles {
  const read = (file: string | undefined): string | undefined =>
    file === undefined ? undefined : readFileSync(file, 'utf8');
  const contents = {
    get ca() {
      return read(files.ca);
    },
    get cert() {
      return read(files.cert);
    },
    get key() {
      return read(files.key);
    },
  };
  return Object.defineProperty(contents, 'toJSON', { value: () => files });
}
