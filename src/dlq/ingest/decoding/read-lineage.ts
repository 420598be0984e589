import type { Header } from '../../../kernel/broker-record.ts';
import { redriveHeaders } from '../../domain/redrive-headers.ts';

/** The message, attempt and version that our headers name; null if the header is missing or malformed. */
export type HeaderLineage = Readonly<{
  messageId: string | null;
  attempt: number | null;
  version: number | null;
}>;

export function readLineage(headers: readonly Header[]): HeaderLineage {
  return {
    messageId: lastValue(headers, redriveHeaders.messageId, UUID),
    attempt: numberOf(lastValue(headers, redriveHeaders.attempt, DECIMAL)),
    version: numberOf(lastValue(headers, redriveHeaders.version, DECIMAL)),
  };
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
const DECIMAL = /^[1-9]\d{0,9}$/;
const INT_MAX = 2 ** 31 - 1;

/** The last header of this name decides, even if it is malformed: an earlier one is from an earlier retry. */
function lastValue(headers: readonly Header[], name: string, form: RegExp): string | null {
  const header = headers.findLast(({ key }) => key.length === name.length && key.toString('latin1') === name);
  if (header === undefined || header.value === null || header.value.length > 36) return null;
  const value = header.value.toString('latin1');
  return form.test(value) ? value : null;
}

function numberOf(decimal: string | null): number | null {
  const number = Number(decimal ?? 0);
  return number >= 1 && number <= INT_MAX ? number : null;
}
