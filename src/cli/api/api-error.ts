export type ApiErrorFacts = Readonly<{
  /** Undefined if there was no answer. */
  status?: number | undefined;
  code?: string | undefined;
  requestId?: string | undefined;
  details?: readonly Readonly<{ field: string; reason: string; message: string }>[];
  /** The action may have been done. */
  isInDoubt?: boolean;
}>;

/** The server refused, failed, or did not answer. */
export class ApiError extends Error {
  readonly status: number | undefined;
  readonly code: string | undefined;
  readonly requestId: string | undefined;
  readonly details: NonNullable<ApiErrorFacts['details']>;
  readonly isInDoubt: boolean;

  constructor(message: string, facts: ApiErrorFacts = {}) {
    super(message);
    this.name = 'ApiError';
    this.status = facts.status;
    this.code = facts.code;
    this.requestId = facts.requestId;
    this.details = facts.details ?? [];
    this.isInDoubt = facts.isInDoubt ?? false;
  }
}
