/** Without `Uint8Array.fromBase64`, which not all supported browsers have. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export function encodeBase64(bytes: Uint8Array): string {
  const parts: string[] = [];
  const step = 0x8000;
  for (let i = 0; i < bytes.length; i += step)
    parts.push(String.fromCharCode(...bytes.subarray(i, i + step)));
  return btoa(parts.join(''));
}
