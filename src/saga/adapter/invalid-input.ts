import { AppError } from '../../kernel/errors.ts';

/** What a schema cannot say about one field of a request. */
export function invalidInput(field: string, reason: string, message: string): AppError {
  return new AppError('SYS_SAGA_VALIDATION_ERROR', 'validation', `${field} ${message}`, {
    details: [{ field, reason, message }],
  });
}
