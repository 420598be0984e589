/** Text of bytes, in which bytes that are no UTF-8 are shown as `⟨ff⟩` and counted. */
export type DecodedText = Readonly<{ text: string; invalidAt: readonly number[]; invalidCount: number }>;

const maxMarks = 1000;

/** A cut in the middle of a character at the end is left out, not marked, if `isCut`. */
export function decodeText(bytes: Uint8Array, isCut = false): DecodedText {
  const whole = decodeStrictly(bytes);
  if (whole !== null) return { text: whole, invalidAt: [], invalidCount: 0 };
  const parts: string[] = [];
  const invalidAt: number[] = [];
  let invalidCount = 0;
  let from = 0;
  for (let at = 0; at < bytes.length;) {
    const length = characterLength(bytes, at);
    if (length > 0) {
      at += length;
      continue;
    }
    parts.push(decodeStrictly(bytes.subarray(from, at)) ?? '');
    if (isCut && length === -1) return { text: parts.join(''), invalidAt, invalidCount };
    parts.push(`⟨${(bytes[at] ?? 0).toString(16).padStart(2, '0')}⟩`);
    if (invalidAt.length < maxMarks) invalidAt.push(at);
    invalidCount += 1;
    at += 1;
    from = at;
  }
  parts.push(decodeStrictly(bytes.subarray(from)) ?? '');
  return { text: parts.join(''), invalidAt, invalidCount };
}

function decodeStrictly(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Bytes of the character that begins there; 0 if it is none, -1 if the bytes end within it. */
function characterLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return 1;
  const length = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first >= 0xf5) return 0;
  const second = bytes[at + 1];
  const isWrongSecond =
    second !== undefined &&
    ((first === 0xe0 && second < 0xa0) ||
      (first === 0xed && second > 0x9f) ||
      (first === 0xf0 && second < 0x90) ||
      (first === 0xf4 && second > 0x8f));
  if (isWrongSecond) return 0;
  for (let i = 1; i < length; i += 1) {
    const next = bytes[at + i];
    if (next === undefined) return -1;
    if ((next & 0xc0) !== 0x80) return 0;
  }
  return length;
}
