import { AppError } from '../kernel/errors.ts';

/** Transactions on a saga's row are short: one second later the row is usually free. */
const retryAfterMs = 1000;

/** Nothing was changed; the same request succeeds once the other transaction has ended. */
export function busy(cause: string): AppError {
  return new AppError('SYS_SAGA_BUSY', 'conflict', `${cause}; try again`, { retryAfterMs });
}

export function throwNotFound(message: string): never {
  throw notFound(message);
}

export function sagaNotFound(sagaId: string): AppError {
  return notFound(`saga not found: saga_id=${sagaId}`);
}

export function workflowNotFound(name: string): AppError {
  return notFound(`workflow not found: workflow_name=${name}`);
}

function notFound(message: string): AppError {
  return new AppError('SYS_SAGA_NOT_FOUND', 'not_found', message);
}

/** A field is invalid in a way that its schema does not check. */
export function invalidInput(field: string, reason: string, message: string): AppError {
  return new AppError('SYS_SAGA_VALIDATION_ERROR', 'validation', `${field} ${message}`, {
    details: [{ field, reason, message }],
  });
}
