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

/**
 * The secret that the file holds now. Files that an agent renews are read again for each new connection, so
 * that new connections take new credentials while the old ones drain.
 */
export async function readSecret(path: string): Promise<string> {
  return trimSecret(await readFile(path, 'utf8'));
}

/** Editors and templates end a file with a newline that is no part of the secret; other blanks may be. */
export const trimSecret = (text: string): string => text.replace(/\r?\n$/, '');
