import type { Header } from '../../domain/record.ts';
import { redriveHeaders } from '../../domain/redrive-headers.ts';

/** The message that a dead letter says it is an attempt of; null where the header is missing or not as we write it. */
export type ToldLineage = Readonly<{ messageId: string | null; attempt: number | null }>;

export function readLineage(headers: readonly Header[]): ToldLineage {
  return {
    messageId: lastValue(headers, redriveHeaders.messageId, UUID),
    attempt: attemptOf(lastValue(headers, redriveHeaders.attempt, DECIMAL)),
  };
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
const DECIMAL = /^[1-9]\d{0,9}$/;
const ATTEMPT_MAX = 2 ** 31 - 1;

/** The last header of this name decides, even when it is malformed: an earlier one belongs to an earlier round. */
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
