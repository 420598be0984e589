import { createHash, randomBytes } from 'node:crypto';

/** What the cookie of a session holds: 256 random bits. The table holds only their hash. */
const referencePattern = /^[\w-]{43}$/;

export type SessionReference = Readonly<{ text: string; sha256: Buffer }>;

export function makeReference(): SessionReference {
  const text = randomBytes(32).toString('base64url');
  return { text, sha256: hashOf(text) };
}

/** Undefined if the text is none. */
export function readReference(text: string): SessionReference | undefined {
  return referencePattern.test(text) ? { text, sha256: hashOf(text) } : undefined;
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
