import { isUtf8 } from 'node:buffer';
import type { Header } from '../kernel/broker-record.ts';

/**
 * Headers as the jsonb column has them: an ordered list that is readable in psql and keeps every byte. A name or value
 * that is UTF-8 without NUL is text; any other is base64, in a field of another name. A null value is null.
 */
export type StoredHeader = Readonly<
  ({ key: string } | { key_base64: string }) & ({ value: string | null } | { value_base64: string })
>;

export function storeHeaders(headers: readonly Header[]): readonly StoredHeader[] {
  return headers.map(({ key, value }) => ({
    ...(isCleanText(key) ? { key: key.toString('utf8') } : { key_base64: key.toString('base64') }),
    ...(value === null
      ? { value: null }
      : isCleanText(value)
        ? { value: value.toString('utf8') }
        : { value_base64: value.toString('base64') }),
  }));
}

export function readHeaders(stored: readonly StoredHeader[] | null): readonly Header[] {
  return (stored ?? []).map((header) => ({
    key: 'key' in header ? Buffer.from(header.key, 'utf8') : Buffer.from(header.key_base64, 'base64'),
    value:
      'value_base64' in header
        ? Buffer.from(header.value_base64, 'base64')
        : header.value === null
          ? null
          : Buffer.from(header.value, 'utf8'),
  }));
}

/** jsonb accepts any UTF-8 but NUL. */
function isCleanText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}
