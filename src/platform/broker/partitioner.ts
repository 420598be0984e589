/**
 * Kafka's murmur2 of the key, as the signed 32-bit number that the Java client computes. The client library exports it
 * too, but with a BigInt that grows with the key: it takes 3 s for a key of 100 kB, and blocks the process meanwhile.
 */
export function murmur2(key: Buffer): number {
  const multiplier = 0x5bd1e995;
  const { length } = key;
  let hash = 0x9747b28c ^ length;
  const whole = length & ~3;
  for (let at = 0; at < whole; at += 4) {
    let word = Math.imul(key.readInt32LE(at), multiplier);
    word ^= word >>> 24;
    hash = Math.imul(hash, multiplier) ^ Math.imul(word, multiplier);
  }
  const rest = length - whole;
  if (rest > 0) {
    if (rest > 2) hash ^= (key[whole + 2] ?? 0) << 16;
    if (rest > 1) hash ^= (key[whole + 1] ?? 0) << 8;
    hash = Math.imul(hash ^ (key[whole] ?? 0), multiplier);
  }
  hash ^= hash >>> 13;
  hash = Math.imul(hash, multiplier);
  return hash ^ (hash >>> 15);
}

/** The partition that the Java client chooses for a key, so that all producers agree. */
export const partitionOfKey = (key: Buffer, partitions: number): number =>
  (murmur2(key) & 0x7fffffff) % partitions;
