import { readFileSync } from 'node:fs';

import { codeOf } from '../../kernel/errors.ts';
import { filePath, secret, type Format } from '../formats/format.ts';
import { orMap, shapeOf } from '../formats/map-format.ts';
import { Secret, trimSecret } from './secret.ts';

/** A secret as it is written: itself, or the file that holds it. */
export type SecretValue = Secret | Readonly<{ file: string }>;

export const secretValue = (): Format<SecretValue> => ({
  ...orMap(secret(), shapeOf({ file: filePath() })),
  // Whatever a variable holds is the secret, even if it looks like a map.
  fromText: (text) => text,
});

/** What is wrong with a secret, if anything; must not repeat it. */
type ReasonAgainst = (value: string) => string | undefined;

/** How often a file is looked into, at most: a send must not cost a read. */
const LOOK_EVERY_MS = 1000;

export type OpenedSecret =
  | Readonly<{ ok: true; value: () => string }>
  | Readonly<{ ok: false; at: '' | '.file'; reason: string }>;

/**
 * The secret, to be asked for each time that it is used: one from a file is read again within a second after the
 * file has changed. A file that is gone, empty or half written then leaves the secret as it was, because a
 * request without it would be refused for good.
 */
export function openSecret(
  value: SecretValue,
  reasonAgainst: ReasonAgainst,
  now: () => number = () => performance.now(),
): OpenedSecret {
  if (value instanceof Secret) {
    const reason = reasonAgainst(value.reveal());
    return reason === undefined
      ? { ok: true, value: () => value.reveal() }
      : { ok: false, at: '', reason: `must be ${reason}` };
  }
  const first = readValid(value.file, reasonAgainst);
  if (first.reason !== undefined) return { ok: false, at: '.file', reason: first.reason };
  let { text } = first;
  let lookedAt = now();
  return {
    ok: true,
    value() {
      if (now() - lookedAt >= LOOK_EVERY_MS) {
        lookedAt = now();
        text = readValid(value.file, reasonAgainst).text ?? text;
      }
      return text;
    },
  };
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
