import { readFileSync } from 'node:fs';
import { Type } from 'typebox';

import { codeOf } from '../../kernel/errors.ts';
import { decoded, filePath, text, withRule, type About } from '../formats/value.ts';
import { trimSecret } from './secret.ts';

/**
 * A secret, to be asked for each time that it is used. One from a file is read again within a second after the file has
 * changed. A file that is gone, empty or half written then leaves the secret as it was, because a request without it
 * would be refused for good.
 */
export type SecretSource = (() => string) & Readonly<{ file?: string }>;

/** What is wrong with a secret, if anything; must not repeat it. */
type ReasonAgainst = (value: string) => string | undefined;

/** A secret as it is written: itself, or the file that holds it. */
export function secretValue(reasonAgainst: ReasonAgainst, about: About = {}) {
  const itself = text({
    rule(value) {
      const reason = reasonAgainst(value);
      return reason === undefined ? undefined : `must be ${reason}`;
    },
  });
  const inFile = withRule(
    Type.Object({ file: filePath({ description: 'file that holds the secret' }) }),
    ({ file }) => {
      const { reason } = readValid(file, reasonAgainst);
      return reason === undefined ? undefined : { at: '.file', reason };
    },
  );
  const either = Type.Union([itself, inFile], { isSecret: true, ...about });
  return decoded(either, (value) => openSecret(value, reasonAgainst));
}

/** How often a file is looked into, at most: a send must not cost a read. */
const LOOK_EVERY_MS = 1000;

/** Of a value that was found to be right. */
export function openSecret(
  value: string | Readonly<{ file: string }>,
  reasonAgainst: ReasonAgainst,
  now: () => number = () => performance.now(),
): SecretSource {
  if (typeof value === 'string') return () => value;
  const { file } = value;
  let text = readValid(file, reasonAgainst).text ?? '';
  let lookedAt = now();
  const read = (): string => {
    if (now() - lookedAt >= LOOK_EVERY_MS) {
      lookedAt = now();
      text = readValid(file, reasonAgainst).text ?? text;
    }
    return text;
  };
  return Object.assign(read, { file });
}

type ReadSecret = Readonly<{ text: string; reason?: undefined } | { text?: undefined; reason: string }>;

function readValid(file: string, reasonAgainst: ReasonAgainst): ReadSecret {
  let text: string;
  try {
    text = trimSecret(readFileSync(file, 'utf8'));
  } catch (error) {
    return { reason: `the file cannot be read: ${codeOf(error) ?? 'unknown error'}` };
  }
  const reason = text === '' ? 'more than nothing' : reasonAgainst(text);
  return reason === undefined ? { text } : { reason: `what the file holds must be ${reason}` };
}
