import { HttpFault } from './errors/http-fault.ts';

/** Part of a body: `bytes` bytes from `start`. */
export type ByteRange = Readonly<{ start: number; bytes: number }>;

/**
 * The part that the header `Range` asks for; null for the whole. As RFC 9110 allows, a header with several ranges, of
 * another unit, or that is no range at all is ignored. Throws 416 for a range that begins behind the end.
 */
export function readByteRange(header: string | undefined, size: number): ByteRange | null {
  const [, first, last] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(header ?? '') ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return null;
  if (first !== '' && last !== '' && Number(last) < Number(first)) return null;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  if (start >= end)
    throw new HttpFault(416, `the range is not satisfiable: there are ${size} bytes`, {
      headers: { 'content-range': `bytes */${size}` },
    });
  return { start, bytes: end - start };
}

/** For the header `Content-Range`. */
export function formatContentRange({ start, bytes }: ByteRange, size: number): string {
  return `bytes ${start}-${start + bytes - 1}/${size}`;
}
