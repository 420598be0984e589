import { isUuid } from '../kernel/uuid.ts';
import { invalidInput } from './saga-errors.ts';

/** Checked here, so that an invalid id never reaches the database. */
export function readSagaId(text: string): string {
  if (!isUuid(text)) throw invalidInput('saga_id', 'format', 'must be a UUID');
  return text.toLowerCase();
}
