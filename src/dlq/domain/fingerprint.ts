import { hash } from 'node:crypto';
import { templateOf } from './error-template.ts';
import { topUserFrame } from './user-frame.ts';

/**
 * Failures with the same cause have the same fingerprint: a hash of the cause's class, of the message without its
 * variable parts, and of the frame in the user's code. The basis shows why a message was grouped as it was. The version
 * changes with the algorithm, so that old and new fingerprints never mix.
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
const CACHE_MAX = 1024;

/** Caches the hashes of recent causes: a burst of dead letters usually has few. */
export function createFingerprinter(): (error: FingerprintedError) => Fingerprint {
  const cache = new Map<string, Fingerprint>();
  return (error) => {
    const basis = basisOf(error);
    const key = JSON.stringify([VERSION, basis.class, basis.message, basis.frame]);
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    if (cache.size >= CACHE_MAX) cache.clear();
    const fingerprint = { fingerprint: `${VERSION}:${hash('sha256', key).slice(0, 32)}`, basis };
    cache.set(key, fingerprint);
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
