import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { inspect } from 'node:util';

import { codeOf } from '../../kernel/errors.ts';

const REDACTED = '[redacted]';

/** A value that may be used but not shown: logged, inspected or put into JSON it is redacted. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}

/** Editors and templates end a file with a newline that is no part of the secret; other blanks may be. */
export const trimSecret = (text: string): string => text.replace(/\r?\n$/, '');

/** A user with its password in one file, as an agent renders the answer of Vault's database engine. */
export type LoginText = Readonly<{ user: string; password: string }>;

/** A login of the configuration, and the files that some of it came from. */
export type StoredLogin = Readonly<{
  user: string;
  userFile: string | undefined;
  password: Secret;
  passwordFile: string | undefined;
}>;

/** As the files hold it now: an agent may renew it while the process runs. One file for both is read once. */
export async function readLogin(stored: StoredLogin): Promise<LoginText> {
  const { user, userFile, password, passwordFile } = stored;
  const textOf = (file: string): Promise<string> => readFile(file, 'utf8');
  if (userFile !== undefined && userFile === passwordFile) {
    const login = parseLogin(await textOf(userFile));
    if (login === undefined) throw new Error(loginReason);
    return login;
  }
  return {
    user: userFile === undefined ? user : loginPart(await textOf(userFile), 'user'),
    password:
      passwordFile === undefined ? password.reveal() : loginPart(await textOf(passwordFile), 'password'),
  };
}

/** What is wrong if one file is named for the user and for the password. */
export function reasonAgainstLogin({
  userFile,
  passwordFile,
}: Pick<StoredLogin, 'userFile' | 'passwordFile'>): string | undefined {
  if (userFile === undefined || userFile !== passwordFile) return undefined;
  try {
    return parseLogin(readFileSync(userFile, 'utf8')) === undefined ? loginReason : undefined;
  } catch (error) {
    return `the secret file cannot be read: ${codeOf(error) ?? 'unknown error'}`;
  }
}

/** The user or the password in a file that holds it alone, or both as JSON. */
export const loginPart = (text: string, part: keyof LoginText): string =>
  parseLogin(text)?.[part] ?? trimSecret(text);

export const loginReason = 'must hold JSON like {"username": "…", "password": "…"}';

/** Undefined if the text is none; it may be half written. The key is `username`, as Vault says, or `user`. */
export function parseLogin(text: string): LoginText | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { username, user = username, password } = value as Record<string, unknown>;
  if (typeof user !== 'string' || user === '' || typeof password !== 'string') return undefined;
  return { user, password };
}
