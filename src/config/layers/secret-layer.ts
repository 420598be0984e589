import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { codeOf } from '../../kernel/errors.ts';
import type { Problem } from '../config-error.ts';
import type { SchemaKey } from '../schema-keys.ts';
import { mergeLayers, type Entry, type Layer } from './merge-layers.ts';
import { loginReason, parseLogin, trimSecret } from './secret.ts';

/** These hold user and password together, so that both always change at once; the last one counts. */
const LOGIN_FILES = ['db-creds', 'database.json'];

/**
 * The files that an agent such as Vault's mounts, named by `secretFile` in the schema. A file that is not there says
 * nothing; one that is there and cannot be read is a problem.
 */
export function secretLayer(folder: string, known: readonly SchemaKey[]): Layer {
  const entries: Entry[] = [];
  const problems: Problem[] = [];
  const read = (name: string, path: string): Readonly<{ file: string; text: string | undefined }> => {
    const file = join(folder, name);
    try {
      return { file, text: readFileSync(file, 'utf8') };
    } catch (error) {
      const code = codeOf(error) ?? 'unknown error';
      if (code !== 'ENOENT' && code !== 'ENOTDIR')
        problems.push({ path, reason: `the secret file cannot be read: ${code}`, source: file });
      return { file, text: undefined };
    }
  };
  for (const { keys, path, node } of known) {
    if (!('secretFile' in node)) continue;
    const { file, text } = read(String(node.secretFile), path);
    if (text !== undefined) entries.push({ keys, value: trimSecret(text), source: file, file });
  }
  for (const name of LOGIN_FILES) {
    const { file, text } = read(name, 'database.user');
    if (text === undefined) continue;
    const login = parseLogin(text);
    if (login === undefined) problems.push({ path: 'database.user', reason: loginReason, source: file });
    else
      for (const key of ['user', 'password'] as const)
        entries.push({ keys: ['database', key], value: login[key], source: file, file });
  }
  return { entries, problems, warnings: [] };
}

/** A secret file overrides what the configuration files say: whoever wrote a password there should know. */
export function overrideWarnings(files: readonly Layer[], secrets: Layer): readonly string[] {
  const { given: written } = mergeLayers(files);
  return secrets.entries.flatMap(({ keys, file }) => {
    const path = keys.join('.');
    const given = written.get(path);
    if (given === undefined || given.value === '') return [];
    return [`${path} is in ${given.source} and in ${file}: the secret file is used`];
  });
}
