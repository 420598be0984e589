import { createHash } from 'node:crypto';

/**
 * Identifies what was published: a hash of key and value, each prefixed by its length, or -1 for null. The claim
 * computes the same hash in SQL.
 */
export function recordSha256(key: Buffer | null, value: Buffer | null): Buffer {
  const hash = createHash('sha256');
  // Without concatenating: a value can have a hundred megabytes.
  for (const bytes of [key, value]) {
    const length = Buffer.alloc(4);
    length.writeInt32BE(bytes === null ? -1 : bytes.length);
    hash.update(length);
    if (bytes !== null) hash.update(bytes);
  }
  return hash.digest();
}
