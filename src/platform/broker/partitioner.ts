/** Kafka's murmur2 of the key, as the signed 32-bit number that the Java client computes. */
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

/** The partition in which the Java client puts a record with this key: a key keeps its place, whoever writes it. */
export const partitionOfKey = (key: Buffer, partitions: number): number =>
  (murmur2(key) & 0x7fffffff) % partitions;
