import type { ErrorDetail } from '../../kernel/errors.ts';

/**
 * What the HTTP layer refuses by itself, before a slice is asked. It has a status and no code: the code gets the
 * prefix of the slice whose route was called, which only the error handler knows.
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

/** A refusal that names the fields at fault. */
export function invalidInput(details: readonly ErrorDetail[]): HttpFault {
  const said = details.slice(0, 3).map(({ field, message }) => `${field} ${message}`);
  const unsaid = details.length - said.length;
  const more = unsaid > 0 ? `; and ${unsaid} more` : '';
  return new HttpFault(400, `invalid request: ${said.join('; ')}${more}`, { details });
}
