export type ErrorDetail = Readonly<{ field: string; reason: string; message: string }>;

export type ApiErrorFacts = Readonly<{
  /** Undefined if there was no answer. */
  status?: number | undefined;
  /** `SYS_<SLICE>_<NAME>`; undefined if the error is not from Redrive. */
  code?: string | undefined;
  requestId?: string | undefined;
  details?: readonly ErrorDetail[];
  /** The request may have been done. */
  isInDoubt?: boolean;
  /** After how long the server wants the next attempt. */
  retryAfterMs?: number | undefined;
  cause?: unknown;
  /** The item that the error is about, as it is now; of dead letters. */
  current?: Readonly<Record<string, unknown>> | undefined;
}>;

/** The server refused, failed, or did not answer. */
export class ApiError extends Error {
  readonly status: number | undefined;
  readonly code: string | undefined;
  readonly requestId: string | undefined;
  readonly details: readonly ErrorDetail[];
  readonly isInDoubt: boolean;
  readonly retryAfterMs: number | undefined;
  readonly current: Readonly<Record<string, unknown>> | undefined;

  constructor(message: string, facts: ApiErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = 'ApiError';
    this.status = facts.status;
    this.code = facts.code;
    this.requestId = facts.requestId;
    this.details = facts.details ?? [];
    this.isInDoubt = facts.isInDoubt ?? false;
    this.retryAfterMs = facts.retryAfterMs;
    this.current = facts.current;
  }
}
