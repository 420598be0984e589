import { AppError, codeOf } from '../../kernel/errors.ts';
import type { ErrorDetail } from '../../kernel/errors.ts';
import { errorCode, statusOf } from './error-status.ts';
import { HttpFault } from './http-fault.ts';

export type ErrorBody = Readonly<{
  error: Readonly<{
    code: string;
    message: string;
    request_id: string;
    details: readonly ErrorDetail[];
  }>;
}>;

export type ErrorAnswer = Readonly<{
  status: number;
  headers: Readonly<Record<string, string>>;
  body: ErrorBody;
}>;

type Refusal = Readonly<{
  status: number;
  code: string;
  message: string;
  details: readonly ErrorDetail[];
  headers: Readonly<Record<string, string>>;
}>;

/** The slice in whose name errors speak that belong to no slice. */
export const HTTP_SLICE = 'http';

/** The answer to anything thrown while a request was served. What was not meant for the caller stays inside. */
export function errorAnswer(error: unknown, slice: string, requestId: string): ErrorAnswer {
  const { status, code, message, details, headers } = refusalOf(error, slice);
  return { status, headers, body: { error: { code, message, request_id: requestId, details } } };
}

function refusalOf(error: unknown, slice: string): Refusal {
  if (error instanceof AppError) return refusalOfAppError(error);
  if (error instanceof HttpFault) {
    const { statusCode: status, message, details, headers } = error;
    return { status, code: errorCode(slice, status), message, details, headers };
  }
  const status = clientErrorStatusOf(error);
  return {
    status,
    code: errorCode(slice, status),
    message: status === 500 ? 'internal error' : frameworkMessage(error),
    details: [],
    headers: {},
  };
}

function refusalOfAppError(error: AppError): Refusal {
  return {
    status: statusOf(error.kind),
    code: error.code,
    message: error.kind === 'internal' ? 'internal error' : error.message,
    details: error.kind === 'internal' ? [] : error.details,
    headers:
      error.retryAfterMs === undefined
        ? {}
        : { 'retry-after': String(Math.max(1, Math.ceil(error.retryAfterMs / 1000))) },
  };
}

/**
 * Fastify marks what the client did wrong with a 4xx status, and so it marks a connection that broke while the
 * body was read; everything else is ours, and a 500.
 */
function clientErrorStatusOf(error: unknown): number {
  const status = (error as { statusCode?: unknown } | null | undefined)?.statusCode;
  const code = codeOf(error);
  const isFramework = code?.startsWith('FST_') === true || code === 'ECONNRESET';
  if (!isFramework || typeof status !== 'number' || status < 400 || status > 499) return 500;
  return status === 414 ? 400 : status;
}

function frameworkMessage(error: unknown): string {
  switch (codeOf(error) ?? '') {
    case 'FST_ERR_BAD_URL':
      return 'the path is not valid percent-encoded UTF-8';
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return 'the path has a segment that is too long';
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return 'the body is larger than this server accepts';
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return 'the body must be JSON: content-type application/json';
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return 'the body is not as long as its content-length says';
    default:
      return 'the request cannot be understood';
  }
}
