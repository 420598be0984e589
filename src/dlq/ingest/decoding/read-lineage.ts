import type { Header } from '../../../kernel/broker-record.ts';
import { redriveHeaders } from '../../domain/redrive-headers.ts';

/** The message and attempt that our headers name; null if the header is missing or malformed. */
export type HeaderLineage = Readonly<{ messageId: string | null; attempt: number | null }>;

export function readLineage(headers: readonly Header[]): HeaderLineage {
  return {
    messageId: lastValue(headers, redriveHeaders.messageId, UUID),
    attempt: attemptOf(lastValue(headers, redriveHeaders.attempt, DECIMAL)),
  };
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
const DECIMAL = /^[1-9]\d{0,9}$/;
const ATTEMPT_MAX = 2 ** 31 - 1;

/** The last header of this name decides, even if it is malformed: an earlier one is from an earlier retry. */
function lastValue(headers: readonly Header[], name: string, form: RegExp): string | null {
  const header = headers.findLast(({ key }) => key.length === name.length && key.toString('latin1') === name);
  if (header === undefined || header.value === null || header.value.length > 36) return null;
  const value = header.value.toString('latin1');
  return form.test(value) ? value : null;
}

function attemptOf(decimal: string | null): number | null {
  const attempt = Number(decimal ?? 0);
  return attempt >= 1 && attempt <= ATTEMPT_MAX ? attempt : null;
}
