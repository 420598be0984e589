import type { ErrorKind } from '../../../kernel/errors.ts';

/** The HTTP status of each kind of error, and the last part of its default code. */
const byKind: Readonly<Record<ErrorKind, Readonly<{ status: number; name: string }>>> = {
  validation: { status: 400, name: 'VALIDATION_ERROR' },
  unauthenticated: { status: 401, name: 'UNAUTHENTICATED' },
  forbidden: { status: 403, name: 'FORBIDDEN' },
  not_found: { status: 404, name: 'NOT_FOUND' },
  conflict: { status: 409, name: 'CONFLICT' },
  precondition_failed: { status: 412, name: 'PRECONDITION_FAILED' },
  too_large: { status: 413, name: 'TOO_LARGE' },
  semantic: { status: 422, name: 'UNPROCESSABLE' },
  precondition_required: { status: 428, name: 'PRECONDITION_REQUIRED' },
  rate_limited: { status: 429, name: 'RATE_LIMITED' },
  internal: { status: 500, name: 'INTERNAL_ERROR' },
  unavailable: { status: 503, name: 'UNAVAILABLE' },
};

/** The statuses above, and those that only HTTP itself uses. */
const byStatus: ReadonlyMap<number, string> = new Map([
  ...Object.values(byKind).map(({ status, name }) => [status, name] as const),
  [405, 'METHOD_NOT_ALLOWED'],
  [408, 'REQUEST_TIMEOUT'],
  [415, 'UNSUPPORTED_MEDIA_TYPE'],
  [416, 'RANGE_NOT_SATISFIABLE'],
  [417, 'EXPECTATION_FAILED'],
  [421, 'MISDIRECTED_REQUEST'],
  [431, 'HEADERS_TOO_LARGE'],
]);

export function statusOf(kind: ErrorKind): number {
  return byKind[kind].status;
}

/** `SYS_DLQ_TOO_LARGE` for the slice `dlq` and 413. */
export function errorCode(slice: string, status: number): string {
  const name = byStatus.get(status) ?? (status < 500 ? 'BAD_REQUEST' : 'INTERNAL_ERROR');
  return `SYS_${slice.toUpperCase().replaceAll('-', '_')}_${name}`;
}
