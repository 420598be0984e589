import { messageOf } from '../../kernel/errors.ts';

export type ReadHeaders =
  | Readonly<{ headers: Readonly<Record<string, string>> }>
  | Readonly<{ unreadable: string }>;

/** Shorter words are not secrets, and hiding them would garble texts that contain them. */
const MIN_SECRET_LENGTH = 8;

/** Reads the configured headers at every call: secret files may change, or be missing. */
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

/** Removes the credentials that we sent from a text: some servers repeat a rejected key in their answer. */
export function withoutSecrets(text: string, headers: Readonly<Record<string, string>>): string {
  return Object.values(headers)
    .flatMap((value) => value.split(/[\s,;=]+/))
    .filter((word) => word.length >= MIN_SECRET_LENGTH)
    .reduce((hidden, word) => hidden.replaceAll(word, '***'), text);
}
