export type HexLine = Readonly<{ offset: string; hex: string; text: string }>;

const bytesPerLine = 16;

/** Sixteen bytes per line: offset, hexadecimal, and the printable ASCII. */
export function hexLines(bytes: Uint8Array, from = 0): readonly HexLine[] {
  const width = Math.max(4, (from + bytes.length).toString(16).length);
  return Array.from({ length: Math.ceil(bytes.length / bytesPerLine) }, (_, i) => {
    const part = [...bytes.subarray(i * bytesPerLine, (i + 1) * bytesPerLine)];
    return {
      offset: (from + i * bytesPerLine).toString(16).padStart(width, '0'),
      hex: part.map((byte) => byte.toString(16).padStart(2, '0')).join(' '),
      text: part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '·')).join(''),
    };
  });
}
