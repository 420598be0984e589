import { readInstant } from '../../kernel/read-instant.ts';
import { isUuid } from '../../kernel/uuid.ts';
import { isQueueName } from '../domain/queue-settings.ts';
import { invalidInput } from './invalid-input.ts';

/** What several routes are told in one form. Checked here, so that a wrong text never reaches the database. */

export function readJobId(text: string): string {
  if (!isUuid(text)) throw invalidInput('id', 'format', 'must be a UUID');
  return text.toLowerCase();
}

export function readQueueName(text: string): string {
  if (!isQueueName(text))
    throw invalidInput(
      'queue',
      'format',
      'must be 1 to 100 lower-case letters, digits, dots, hyphens or underscores, and begin with a letter',
    );
  return text;
}

/** Undefined where the field was not sent. */
export function readOptionalInstant(field: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const instant = readInstant(text);
  if (instant === null) throw invalidInput(field, 'format', 'must be a timestamp in ISO 8601 with its zone');
  return instant;
}
