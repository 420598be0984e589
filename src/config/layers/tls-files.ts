import { accessSync, constants, readFileSync } from 'node:fs';
import { Type } from 'typebox';

import { codeOf } from '../../kernel/errors.ts';
import { decoded, filePath, optional, withRule, type About, type FlawAt } from '../formats/value.ts';

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

/** A missing file is a problem at start, not when it is needed. */
export function reasonAgainstFile(file: string): string | undefined {
  try {
    accessSync(file, constants.R_OK);
    return undefined;
  } catch (error) {
    return `the file cannot be read: ${codeOf(error) ?? 'unknown error'}`;
  }
}

export function flawOfPair({ cert, key }: TlsFiles, path: string): FlawAt | undefined {
  if (cert !== undefined && key === undefined)
    return { at: '.key', reason: `is missing, but ${path}.cert is set` };
  return key !== undefined && cert === undefined
    ? { at: '.cert', reason: `is missing, but ${path}.key is set` }
    : undefined;
}

export const tlsKeys = (file: typeof filePath) => ({
  ca: optional(
    file({ description: 'PEM file with certificate authorities; default: those that Node.js trusts' }),
  ),
  cert: optional(file({ description: 'PEM file with the client certificate' })),
  key: optional(file({ description: 'PEM file with the key of the client certificate' })),
});

export const readableFile = (about: About = {}) => filePath({ rule: reasonAgainstFile, ...about });

/** Of a connection that is encrypted in any case. */
export const tlsFiles = (about: About = {}) =>
  decoded(withRule(Type.Object(tlsKeys(readableFile), about), flawOfPair), contentsOf);

/** Undefined where it is empty: whether there is TLS is told by the URL. */
export const urlTlsFiles = () =>
  decoded(withRule(Type.Object(tlsKeys(readableFile), { default: {} }), flawOfPair), (files) =>
    Object.values(files).every((file) => file === undefined) ? undefined : contentsOf(files),
  );
