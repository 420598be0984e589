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

/** Decimal digits. */
export const decimal: IntegerCodec = (bytes) => {
  if (bytes.length > DECIMAL_MAX_LENGTH) return undefined;
  const text = bytes.toString('latin1');
  return /^-?\d+$/.test(text) ? BigInt(text) : undefined;
};

/** The sign and the digits of the longest `long`. */
const DECIMAL_MAX_LENGTH = 20;

/**
 * For names that some producers write in binary and others as text. Bytes that are all digits are text: as a binary
 * number they would be a partition above 800 million, or an offset above 3 * 10^18.
 */
export const int32OrDecimal: IntegerCodec = (bytes) => decimal(bytes) ?? int32(bytes);

export const int64OrDecimal: IntegerCodec = (bytes) => decimal(bytes) ?? int64(bytes);
