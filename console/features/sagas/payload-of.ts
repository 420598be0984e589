import { elementTexts } from '../../lib/exact-json/element-texts.ts';
import { memberText } from '../../lib/exact-json/member-text.ts';
import type { FirstBytes } from '../../lib/api/api-client.ts';

const shownBytes = 262_144;

/** A part of the answer as it was sent; null if there is nothing. */
export function bytesOf(text: string | null): FirstBytes | null {
  if (text === null || text === 'null') return null;
  const whole = new TextEncoder().encode(text);
  return { bytes: whole.subarray(0, shownBytes), size: whole.length };
}

/** The payload of the saga, from the answer of the API or of a reveal. */
export function payloadText(answer: string): string | null {
  const saga = memberText(answer, 'saga');
  return saga === null ? null : memberText(saga, 'payload');
}

/** What one attempt sent and got. */
export function attemptTexts(
  answer: string,
  id: string,
): Readonly<{ request: string | null; response: string | null }> {
  const log = memberText(answer, 'step_logs') ?? '[]';
  const row = elementTexts(log).find((text) => memberText(text, 'id') === JSON.stringify(id));
  if (row === undefined) return { request: null, response: null };
  return { request: memberText(row, 'request_payload'), response: memberText(row, 'response_payload') };
}
