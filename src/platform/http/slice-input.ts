import { AppError } from '../../kernel/errors.ts';
import { readPage, type CursorShape, type PageQuery, type PageRequest } from '../../kernel/page.ts';
import { readInstant } from '../../kernel/read-instant.ts';
import { isUuid } from '../../kernel/uuid.ts';

/** Input checks that a schema cannot express. They run before the value reaches the database. */

/** The path prefix of all routes of a slice. */
export function apiRoot(slice: string): string {
  return `/api/v1/${slice}`;
}

export function invalidField(slice: string, field: string, reason: string, message: string): AppError {
  return new AppError(`SYS_${slice.toUpperCase()}_VALIDATION_ERROR`, 'validation', `${field} ${message}`, {
    details: [{ field, reason, message }],
  });
}

export function readUuidField(slice: string, field: string, text: string): string {
  if (!isUuid(text)) throw invalidField(slice, field, 'format', 'must be a UUID');
  return text.toLowerCase();
}

/** Undefined if the field was not sent. */
export function readInstantField(slice: string, field: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const instant = readInstant(text);
  if (instant === null)
    throw invalidField(slice, field, 'format', 'must be a timestamp in ISO 8601 with its zone');
  return instant;
}

export function readPageQuery(
  slice: string,
  { page, page_size, cursor }: PageQuery,
  shape?: CursorShape,
): PageRequest {
  const read = readPage({ page, page_size, cursor }, shape);
  if (read === null) throw invalidField(slice, 'cursor', 'invalid', 'is not a valid cursor');
  return read;
}
