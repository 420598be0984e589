import { messageOf } from '../../kernel/errors.ts';

export type ReadHeaders =
  | Readonly<{ headers: Readonly<Record<string, string>> }>
  | Readonly<{ unreadable: string }>;

/** Shorter words of a header are no secret, and hiding them would spoil texts that merely contain them. */
const MIN_SECRET_LENGTH = 8;

/** The configured headers as they are now: a secret's file may have changed, or be away. */
export function readHeaders(configured: Readonly<Record<string, () => string>>): ReadHeaders {
  const headers: Record<string, string> = { 'user-agent': 'redrive' };
  for (const [name, value] of Object.entries(configured)) {
    try {
      headers[name.toLowerCase()] = value();
    } catch (error) {
      return { unreadable: `the header ${name} cannot be read: ${messageOf(error)}` };
    }
  }
  return { headers };
}

/** A text from outside without the credentials that we sent there: some answers repeat a key that they refuse. */
export function withoutSecrets(text: string, headers: Readonly<Record<string, string>>): string {
  return Object.values(headers)
    .flatMap((value) => value.split(/[\s,;=]+/))
    .filter((word) => word.length >= MIN_SECRET_LENGTH)
    .reduce((hidden, word) => hidden.replaceAll(word, '***'), text);
}
