import { createHash, randomBytes, randomInt } from 'node:crypto';

/** `rdk_<id>_<secret>`: read by length, because a secret in Base64 may contain `_`. */
const prefix = 'rdk_';
const idLength = 8;
const secretBytes = 32;
const secretLength = 43;
const secretAt = prefix.length + idLength + 1;
const idLetters = 'abcdefghijklmnopqrstuvwxyz0123456789';

export type ApiKey = Readonly<{ id: string; secretSha256: Buffer }>;

/** The key and what is stored of it. */
export function makeKey(): ApiKey & Readonly<{ text: string }> {
  const id = Array.from({ length: idLength }, () => idLetters[randomInt(idLetters.length)]).join('');
  const secret = randomBytes(secretBytes).toString('base64url');
  return { id, secretSha256: sha256(secret), text: `${prefix}${id}_${secret}` };
}

/** Undefined if the text is no key. */
export function readKey(text: string): ApiKey | undefined {
  const id = text.slice(prefix.length, prefix.length + idLength);
  const secret = text.slice(secretAt);
  const isKey =
    text.startsWith(prefix) &&
    /^[a-z\d]{8}$/.test(id) &&
    text[secretAt - 1] === '_' &&
    secret.length === secretLength &&
    /^[\w-]+$/.test(secret);
  return isKey ? { id, secretSha256: sha256(secret) } : undefined;
}

/** The secret has 256 random bits, so a slow hash would add nothing. */
function sha256(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
