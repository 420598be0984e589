import { readFile } from 'node:fs/promises';
import { inspect } from 'node:util';

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

/** The secret that the file holds now: an agent may renew it while the process runs. */
export async function readSecret(path: string): Promise<string> {
  return trimSecret(await readFile(path, 'utf8'));
}

/** Editors and templates end a file with a newline that is no part of the secret; other blanks may be. */
export const trimSecret = (text: string): string => text.replace(/\r?\n$/, '');

/** A user with its password in one file, as an agent renders the answer of Vault's database engine. */
export type LoginText = Readonly<{ user: string; password: string }>;

export async function readLogin(path: string): Promise<LoginText> {
  const login = parseLogin(await readFile(path, 'utf8'));
  if (login === undefined) throw new Error(loginReason);
  return login;
}

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
