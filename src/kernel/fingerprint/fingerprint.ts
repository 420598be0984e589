import { createHash } from 'node:crypto';
import type { Cause } from './cause.ts';
import { templateOf } from './error-template.ts';
import { readStack } from './read-stack.ts';

/**
 * Failures with the same cause have the same fingerprint: a hash of the class of the root cause, of its message without
 * the variable parts, and of the frame in the user's code. The basis shows why a failure was grouped as it was. The
 * version changes with the algorithm, so that old and new fingerprints never mix.
 */
export type Fingerprint = Readonly<{ fingerprint: string; basis: FingerprintBasis }>;

export type FingerprintBasis = Readonly<{ class: string | null; template: string; frame: string | null }>;

export type FingerprintedError = Readonly<{
  errorClass: string | undefined;
  errorMessage: string;
  errorStack: string | undefined;
}>;

export const fingerprintVersion = 2;

const PREFIX = `v${fingerprintVersion}:`;
const NAME_MAX_LENGTH = 256;
const CACHE_MAX = 1024;

/** Caches the hashes of recent causes: a burst of failures usually has few. */
export function createFingerprinter(): (error: FingerprintedError) => Fingerprint {
  const cache = new Map<string, Fingerprint>();
  return (error) => {
    const basis = basisOf(error);
    const key = keyOf(basis);
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    if (cache.size >= CACHE_MAX) cache.clear();
    const fingerprint = { fingerprint: hashOf(key), basis };
    cache.set(key, fingerprint);
    return fingerprint;
  };
}

/** For callers that see few failures. */
export function fingerprintOf(error: FingerprintedError): string {
  return hashOf(keyOf(basisOf(error)));
}

function keyOf(basis: FingerprintBasis): string {
  return JSON.stringify([PREFIX, basis.class, basis.template, basis.frame]);
}

function hashOf(key: string): string {
  return `${PREFIX}${createHash('sha256').update(key).digest('hex').slice(0, 32)}`;
}

/** A stack that names a cause of the failure is more exact than the headers, which describe the outermost error. */
function basisOf({ errorClass, errorMessage, errorStack }: FingerprintedError): FingerprintBasis {
  const { rootCause, frame } = readStack(errorStack ?? '');
  const { class: className, message } = withoutClassPrefix(
    rootCause ?? { class: errorClass, message: errorMessage },
  );
  return { class: nameOf(className), template: templateOf(message), frame: nameOf(frame) };
}

/** Many producers write `TimeoutError: no answer` where others have the class and the message apart. */
function withoutClassPrefix({ class: className, message }: Cause): Cause {
  if (className !== undefined && message.startsWith(`${className}: `))
    return { class: className, message: message.slice(className.length + 2) };
  if (className !== undefined) return { class: className, message };
  const prefix = CLASS_PREFIX.exec(message.slice(0, NAME_MAX_LENGTH));
  if (prefix?.[1] === undefined) return { class: undefined, message };
  return { class: prefix[1], message: message.slice(prefix[0].length) };
}

/** A qualified name, or one that says that it is an error; Node adds the code of the error to its class. */
const CLASS_PREFIX =
  /^((?:[\w$]{1,80}\.){1,20}[A-Z][\w$]{0,80}|[A-Z]\w{0,80}(?:Error|Exception))(?: \[\w{1,80}\])?: /;

function nameOf(name: string | undefined): string | null {
  return name === undefined ? null : name.slice(0, NAME_MAX_LENGTH).toWellFormed();
}
