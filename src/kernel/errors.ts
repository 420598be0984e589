import { attempt, thrownMessage } from './thrown.ts';

/**
 * An error that a caller can only give up on. What leaves the caller a next step is returned as a value
 * instead (see outcome.ts). The kind decides the HTTP status, in one place; the code is what programs check.
 */
export type ErrorKind =
  | 'validation'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'precondition_failed'
  | 'too_large'
  | 'semantic'
  | 'precondition_required'
  | 'rate_limited'
  | 'internal'
  | 'unavailable';

export type ErrorDetail = Readonly<{ field: string; reason: string; message: string }>;

export class AppError extends Error {
  readonly code: string;
  readonly kind: ErrorKind;
  readonly details: readonly ErrorDetail[];
  readonly retryAfterMs: number | undefined;
  /** The item as it is now, as JSON, if its state is the reason. */
  readonly current: object | undefined;

  constructor(
    code: string,
    kind: ErrorKind,
    message: string,
    more: {
      details?: readonly ErrorDetail[];
      cause?: unknown;
      retryAfterMs?: number;
      current?: object;
    } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = 'AppError';
    this.code = code;
    this.kind = kind;
    this.details = more.details ?? [];
    this.retryAfterMs = more.retryAfterMs;
    this.current = more.current;
  }
}

/** The error's own words, whatever was thrown; never throws itself. */
export function messageOf(error: unknown): string {
  return thrownMessage(error);
}

/** The `code` that Node, drivers and AppError put on an error, if there is one. */
export function codeOf(error: unknown): string | undefined {
  const code = attempt(() => (error as { code?: unknown } | null | undefined)?.code, undefined);
  return typeof code === 'string' ? code : undefined;
}
