import { fingerprintOf } from './fingerprint.ts';

/**
 * The fingerprint of an error that is only a text, such as `BAD_REQUEST: HTTP 404: no such order`. Its class is what it
 * begins with: codes, and the status of an HTTP answer, which tells causes apart where other numbers vary.
 */
export function fingerprintOfText(error: string): string {
  const codes = CODES.exec(error.slice(0, 256))?.[0].replace(/: $/, '') ?? '';
  return fingerprintOf({
    errorClass: codes === '' ? undefined : codes,
    errorMessage: error,
    errorStack: undefined,
  });
}

const CODES = /^(?:[A-Z][A-Z\d_]{3,40}: ){0,3}(?:HTTP \d{3}(?!\w))?/;
