import { fingerprintOfText } from '../../kernel/fingerprint/text-fingerprint.ts';

/**
 * The fingerprint of `last_error`, as it is stored. An order that dies in doubt gets `UNKNOWN` before its code, and
 * keeps the fingerprint of the failures before.
 */
export function errorFingerprint(lastError: string): string {
  return fingerprintOfText(lastError.replace(/^UNKNOWN: (?=[A-Z]+_[A-Z\d_]+: )/, ''));
}
