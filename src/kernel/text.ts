/**
 * Text from outside as PostgreSQL can store it: NUL, lone surrogates and invalid UTF-8 become U+FFFD, and what
 * is longer than `maxBytes` in UTF-8 is cut at a code-point boundary. As a string never has more characters
 * than bytes, the result also fits a `varchar(maxBytes)`, and an index entry of that size.
 */
export function cleanText(input: string | Buffer, maxBytes: number): string {
  const text = typeof input === 'string' ? head(input, maxBytes) : decodedHead(input, maxBytes);
  return cutToBytes(text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text, maxBytes);
}

/** A pair split here becomes a U+FFFD, which at this place no longer fits. */
function head(text: string, maxBytes: number): string {
  return (text.length > maxBytes ? text.slice(0, maxBytes) : text).toWellFormed();
}

/** Decodes a little more than fits, so that the U+FFFD of a character split here lies beyond the final cut. */
function decodedHead(bytes: Buffer, maxBytes: number): string {
  return bytes.toString('utf8', 0, Math.min(bytes.length, maxBytes + 3));
}

function cutToBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.allocUnsafe(maxBytes);
  // `write` never writes a part of a character.
  return bytes.toString('utf8', 0, bytes.write(text));
}
