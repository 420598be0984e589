import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';

/**
 * Encrypted bytes as they are stored:
 *
 *   version (1 byte) | id of the data key (4) | nonce (12) | ciphertext | tag (16)
 *
 * AES-256-GCM. Each item has a key of its own, derived from the data key and its id, so that random nonces do not repeat
 * however many items a data key protects. The first five bytes and the place are authenticated: bytes that were changed,
 * or moved to another item or column, are refused.
 */
export type DataKey = Readonly<{ id: number; secret: Buffer }>;

/** Where the bytes belong. An item keeps its id when its row moves to another table. */
export type Place = Readonly<{ slice: string; item: string; column: string }>;

const version = 1;
const headBytes = 5;
const nonceBytes = 12;
const tagBytes = 16;
/** By how much an envelope is longer than what is in it. */
export const envelopeBytes = headBytes + nonceBytes + tagBytes;
const algorithm = 'aes-256-gcm';
/** Large values are worked on in parts, so that they are in memory twice, not three times. */
const partBytes = 1 << 20;

export function seal({ id, secret }: DataKey, place: Place, plain: Buffer): Buffer {
  const sealed = Buffer.allocUnsafe(plain.length + envelopeBytes);
  sealed.writeUInt8(version, 0);
  sealed.writeUInt32BE(id, 1);
  const nonce = randomBytes(nonceBytes);
  nonce.copy(sealed, headBytes);
  const cipher = createCipheriv(algorithm, itemKey(secret, place), nonce);
  cipher.setAAD(associatedData(sealed, place));
  let at = headBytes + nonceBytes;
  for (const part of partsOf(plain)) at += cipher.update(part).copy(sealed, at);
  cipher.final();
  cipher.getAuthTag().copy(sealed, at);
  return sealed;
}

/** Null if the bytes are not what was sealed with this key for this place. */
export function open({ id, secret }: DataKey, place: Place, sealed: Buffer): Buffer | null {
  if (keyIdOf(sealed) !== id) return null;
  const end = sealed.length - tagBytes;
  const nonce = sealed.subarray(headBytes, headBytes + nonceBytes);
  const decipher = createDecipheriv(algorithm, itemKey(secret, place), nonce, { authTagLength: tagBytes });
  decipher.setAAD(associatedData(sealed, place));
  decipher.setAuthTag(sealed.subarray(end));
  const plain = Buffer.allocUnsafe(sealed.length - envelopeBytes);
  let at = 0;
  for (const part of partsOf(sealed.subarray(headBytes + nonceBytes, end)))
    at += decipher.update(part).copy(plain, at);
  try {
    decipher.final();
    return plain;
  } catch {
    return null;
  }
}

/** The data key that an envelope names; null if the bytes are none. */
export function keyIdOf(sealed: Buffer): number | null {
  return sealed.length >= envelopeBytes && sealed[0] === version ? sealed.readUInt32BE(1) : null;
}

/** Finds equal bytes without telling what they are: the same for the same key and purpose. */
export function lookupHash(secret: Buffer, purpose: string, bytes: Buffer): Buffer {
  return createHmac('sha256', secret).update(`${purpose}\0`).update(bytes).digest();
}

function itemKey(secret: Buffer, { slice, item }: Place): Buffer {
  return createHmac('sha256', secret).update(`redrive item key\0${slice}\0${item}`).digest();
}

function associatedData(sealed: Buffer, { slice, item, column }: Place): Buffer {
  return Buffer.concat([sealed.subarray(0, headBytes), Buffer.from(`${slice}\0${column}\0${item}`)]);
}

function* partsOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += partBytes) yield bytes.subarray(at, at + partBytes);
}
