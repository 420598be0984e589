import type { IncomingHttpHeaders } from 'node:http';
import { isUuid } from '../../kernel/uuid.ts';
import { invalidInput } from './invalid-input.ts';

/** What several routes are told in one form. Checked here, so that a wrong text never reaches the database. */

export function readSagaId(text: string): string {
  if (!isUuid(text)) throw invalidInput('saga_id', 'format', 'must be a UUID');
  return text.toLowerCase();
}

const key = /^[!-~]{1,255}$/;

/** Where a client sent it twice, Node has joined both with a comma and a blank, and no key has a blank. */
export function readIdempotencyKey(headers: IncomingHttpHeaders): string | null {
  const text = headers['idempotency-key'];
  if (text === undefined) return null;
  if (typeof text === 'string' && key.test(text)) return text;
  throw invalidInput('idempotency-key', 'format', 'must be 1 to 255 visible ASCII characters');
}
