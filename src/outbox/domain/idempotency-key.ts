/** Idempotency keys are sent as an HTTP header, so they are visible ASCII. */
export const MIN_KEY_LENGTH = 8;
export const MAX_KEY_LENGTH = 64;

export const KEY_PATTERN = `^[!-~]{${MIN_KEY_LENGTH},${MAX_KEY_LENGTH}}$`;

const key = new RegExp(KEY_PATTERN);

export function isIdempotencyKey(text: string): boolean {
  return key.test(text);
}
