import { hash } from 'node:crypto';
import { templateOf } from './error-template.ts';
import { topUserFrame } from './user-frame.ts';

/**
 * Failures of the same cause have the same fingerprint: it is a hash of the cause's class, of the message
 * without its variable parts and of the place in the user's code. The basis says in words why a message was
 * grouped as it was. The version changes with the algorithm, so that old and new fingerprints never mix.
 */
export type Fingerprint = Readonly<{ fingerprint: string; basis: FingerprintBasis }>;

type FingerprintBasis = Readonly<{ class: string | null; message: string; frame: string | null }>;

export type FingerprintedError = Readonly<{
  errorClass: string | undefined;
  errorMessage: string;
  errorStack: string | undefined;
}>;

const VERSION = 'v1';
const NAME_MAX_LENGTH = 256;
const REMEMBERED_MAX = 1024;

/** The function remembers the hashes of recent causes, as a burst of dead letters mostly has few. */
export function createFingerprinter(): (error: FingerprintedError) => Fingerprint {
  const remembered = new Map<string, Fingerprint>();
  return (error) => {
    const basis = basisOf(error);
    const key = JSON.stringify([VERSION, basis.class, basis.message, basis.frame]);
    const known = remembered.get(key);
    if (known !== undefined) return known;
    if (remembered.size >= REMEMBERED_MAX) remembered.clear();
    const fingerprint = { fingerprint: `${VERSION}:${hash('sha256', key).slice(0, 32)}`, basis };
    remembered.set(key, fingerprint);
    return fingerprint;
  };
}

function basisOf({ errorClass, errorMessage, errorStack }: FingerprintedError): FingerprintBasis {
  return {
    class: nameOf(errorClass),
    message: templateOf(errorMessage),
    frame: nameOf(errorStack === undefined ? undefined : topUserFrame(errorStack)),
  };
}

function nameOf(name: string | undefined): string | null {
  return name === undefined ? null : name.slice(0, NAME_MAX_LENGTH).toWellFormed();
}
