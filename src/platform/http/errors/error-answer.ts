import { AppError, codeOf } from '../../../kernel/errors.ts';
import type { ErrorDetail } from '../../../kernel/errors.ts';
import { errorCode, statusOf } from './error-status.ts';
import { HttpFault } from './http-fault.ts';

export type ErrorBody = Readonly<{
  error: Readonly<{
    code: string;
    message: string;
    request_id: string;
    details: readonly ErrorDetail[];
  }>;
  /** The item that the error is about, as it is now. */
  current?: object;
}>;

export type ErrorAnswer = Readonly<{
  status: number;
  headers: Readonly<Record<string, string>>;
  body: ErrorBody;
}>;

type Failure = Readonly<{
  status: number;
  code: string;
  message: string;
  details: readonly ErrorDetail[];
  headers: Readonly<Record<string, string>>;
  current?: object | undefined;
}>;

/** The error prefix of routes without a slice. */
export const HTTP_SLICE = 'http';

/** The answer to an error thrown by a handler. Hides the messages of internal errors. */
export function errorAnswer(
  error: unknown,
  slice: string,
  requestId: string,
  cover: (text: string) => string = (text) => text,
): ErrorAnswer {
  const { status, code, message, details, headers, current } = failureOf(error, slice);
  const shown = details.map((detail) => ({ ...detail, message: cover(detail.message) }));
  const body = { error: { code, message: cover(message), request_id: requestId, details: shown } };
  return { status, headers, body: current === undefined ? body : { ...body, current } };
}

function failureOf(error: unknown, slice: string): Failure {
  if (error instanceof AppError) return failureOfAppError(error);
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

function failureOfAppError(error: AppError): Failure {
  return {
    status: statusOf(error.kind),
    code: error.code,
    message: error.kind === 'internal' ? 'internal error' : error.message,
    details: error.kind === 'internal' ? [] : error.details,
    current: error.current,
    headers: {
      ...(error.retryAfterMs === undefined
        ? {}
        : { 'retry-after': String(Math.max(1, Math.ceil(error.retryAfterMs / 1000))) }),
      ...(error.kind === 'unauthenticated' ? { 'www-authenticate': challengeOf(error.code) } : {}),
    },
  };
}

/** As RFC 6750 has it: an error only if there was a token. */
function challengeOf(code: string): string {
  const reason = code === 'SYS_AUTH_MISSING_TOKEN' ? '' : ', error="invalid_token"';
  return `Bearer realm="redrive"${reason}`;
}

/**
 * Fastify sets a 4xx status for client errors, also for a connection that broke while the body was read. Everything
 * else is a 500.
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
      return 'the body is too large';
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return 'the body must be JSON: content-type application/json';
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return 'the body does not have the length in content-length';
    default:
      return 'bad request';
  }
}
