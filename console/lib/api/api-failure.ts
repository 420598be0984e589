/** Why a request has no answer that can be used. */
export class ApiFailure extends Error {
  override name = 'ApiFailure';
  /** 0 if there was no answer at all. */
  readonly status: number;
  /** Of the error body, such as `SYS_DLQ_NOT_RETRYABLE`. */
  readonly code: string;
  readonly requestId: string | null;

  constructor(
    message: string,
    facts: Readonly<{ status: number; code: string; requestId?: string | null; cause?: unknown }>,
  ) {
    super(message, { cause: facts.cause });
    this.status = facts.status;
    this.code = facts.code;
    this.requestId = facts.requestId ?? null;
  }
}

type ErrorBody = Readonly<{ error?: Readonly<{ code?: string; message?: string; request_id?: string }> }>;

/** From the answer of a server, or of a proxy before it, which may send anything. */
export function failureOf(status: number, text: string): ApiFailure {
  const { error } = parseBody(text);
  return new ApiFailure(error?.message ?? `the server answered with status ${status}`, {
    status,
    code: error?.code ?? `HTTP_${status}`,
    requestId: error?.request_id ?? null,
  });
}

function parseBody(text: string): ErrorBody {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? body : {};
  } catch {
    return {};
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
