/** Reads an integer from a header's bytes; undefined if their length is wrong. */
export type IntegerCodec = (bytes: Buffer) => bigint | undefined;

/** A Java `int`: four bytes, big-endian. */
export const int32: IntegerCodec = (bytes) => (bytes.length === 4 ? BigInt(bytes.readInt32BE()) : undefined);

/** A Java `long`: eight bytes, big-endian. */
export const int64: IntegerCodec = (bytes) => (bytes.length === 8 ? bytes.readBigInt64BE() : undefined);

/** Java's `BigInteger.toByteArray()`: two's complement in as few bytes as possible, here up to the size of a long. */
export const bigInteger: IntegerCodec = (bytes) => {
  if (bytes.length === 0 || bytes.length > 8) return undefined;
  return BigInt.asIntN(bytes.length * 8, BigInt(`0x${bytes.toString('hex')}`));
};
