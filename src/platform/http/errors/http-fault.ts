import type { ErrorDetail } from '../../../kernel/errors.ts';

/**
 * An error of the HTTP layer itself. It has a status but no code: only the error handler knows the slice of the route,
 * which is the code's prefix.
 */
export class HttpFault extends Error {
  readonly statusCode: number;
  readonly details: readonly ErrorDetail[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    statusCode: number,
    message: string,
    more: { details?: readonly ErrorDetail[]; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message);
    this.name = 'HttpFault';
    this.statusCode = statusCode;
    this.details = more.details ?? [];
    this.headers = more.headers ?? {};
  }
}

/** A 400 that names the invalid fields. */
export function invalidInput(details: readonly ErrorDetail[]): HttpFault {
  const named = details.slice(0, 3).map(({ field, message }) => `${field} ${message}`);
  const unnamed = details.length - named.length;
  const more = unnamed > 0 ? `; and ${unnamed} more` : '';
  return new HttpFault(400, `invalid request: ${named.join('; ')}${more}`, { details });
}
