import type { Header } from '../../../kernel/broker-record.ts';
import { redriveHeaders } from '../../domain/redrive-headers.ts';
import { isAmong } from './dialect.ts';
import { dialects } from './dialects.ts';

/**
 * The headers that a record had before it failed, in order and byte for byte: without the failure headers of any
 * dialect and without ours of an earlier retry. Otherwise every retry would make the record larger.
 */
export function stripFailureHeaders(headers: readonly Header[], dialect: string): readonly Header[] {
  return headers.filter((header) => !isFailureHeader(header.key.toString('latin1'), dialect));
}

function isFailureHeader(name: string, dialect: string): boolean {
  return (
    ours.has(name) ||
    dialects.some(
      (known) =>
        isAmong(known.failureHeaders, name) ||
        (known.name === dialect && isAmong(known.ownFailureHeaders, name)),
    )
  );
}

const ours: ReadonlySet<string> = new Set(Object.values(redriveHeaders));
