import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { codeOf } from '../../kernel/errors.ts';
import type { Problem } from '../config-error.ts';
import { childPath } from '../key-path.ts';
import { mayBeInFile, type SchemaKey } from '../schema-keys.ts';
import { mergeLayers, type AllGiven, type Entry, type Layer } from './merge-layers.ts';
import { loginPart, loginReason, parseLogin, trimSecret } from './secret.ts';

/** `files` hold user and password together, so that both always change at once; the last one counts. */
const LOGINS = [
  { user: 'database.user', password: 'database.password', files: ['db-creds', 'database.json'] },
  { user: 'kafka.sasl.username', password: 'kafka.sasl.password', files: ['kafka-sasl.json'] },
];

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
    if (text !== undefined) entries.push({ keys, value: valueIn(text, path), source: file, file });
  }
  for (const { files, ...paths } of LOGINS)
    for (const name of files) {
      const { file, text } = read(name, paths.user);
      if (text === undefined) continue;
      const login = parseLogin(text);
      if (login === undefined) problems.push({ path: paths.user, reason: loginReason, source: file });
      else
        for (const part of ['user', 'password'] as const)
          entries.push({ keys: paths[part].split('.'), value: login[part], source: file, file });
    }
  return { entries, problems, warnings: [] };
}

/** The files that `secrets.files` names. */
export function namedFilesLayer(given: AllGiven, known: readonly SchemaKey[]): Layer {
  const layers = known.filter(mayBeInFile).flatMap((key) => {
    const named = given.get(childPath('secrets.files', key.path));
    // Anything else is reported as a wrong value of secrets.files.
    if (typeof named?.value !== 'string' || named.value === '') return [];
    return [readNamedFile(key, named.value, named.source)];
  });
  return {
    entries: layers.flatMap(({ entries }) => entries),
    problems: layers.flatMap(({ problems }) => problems),
    warnings: [],
  };
}

/** The value of a key in a file that the user named, which therefore must be there. */
export function readNamedFile({ keys, path }: SchemaKey, file: string, namedBy: string): Layer {
  // The secret itself may be there by mistake: only what begins as a path is shown.
  const source = /^\.{0,2}\//.test(file) ? `${file}, named by ${namedBy}` : namedBy;
  const broken = (reason: string): Layer => ({
    entries: [],
    problems: [{ path, reason, source }],
    warnings: [],
  });
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    return broken(`the secret file cannot be read: ${codeOf(error) ?? 'unknown error'}`);
  }
  const value = valueIn(text, path);
  if (value === '') return broken('the secret file is empty');
  return { entries: [{ keys, value, source, file }], problems: [], warnings: [] };
}

function valueIn(text: string, path: string): string {
  const login = LOGINS.find(({ user, password }) => path === user || path === password);
  if (login === undefined) return trimSecret(text);
  return loginPart(text, path === login.user ? 'user' : 'password');
}

/** A secret file overrides what the configuration files say: a password there has no effect, which is reported. */
export function overrideWarnings(files: readonly Layer[], given: AllGiven): readonly string[] {
  const { given: written } = mergeLayers(files);
  return [...given].flatMap(([path, { file }]) => {
    const lower = written.get(path);
    if (file === undefined || lower === undefined || lower.value === '') return [];
    return [`${path} is in ${lower.source} and in ${file}: the secret file is used`];
  });
}
