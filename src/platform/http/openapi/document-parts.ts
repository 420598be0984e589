import { statusOf } from '../errors/error-status.ts';
import type { ErrorKind } from '../../../kernel/errors.ts';

/** What many operations of the OpenAPI document share, as its named components. */

type ErrorPart = Readonly<{ name: string; description: string; code: string; message: string }>;

/** Statuses that a route names if a request can get them; every route of a slice can get the others. */
export type NamedErrorStatus = 401 | 403 | 404 | 409 | 412 | 416 | 422 | 428 | 429 | 503;

const errorParts: Readonly<Record<number, ErrorPart>> = {
  400: {
    name: 'BadRequest',
    description: 'The request is not valid; `error.details` names the fields.',
    code: 'SYS_JOBS_VALIDATION_ERROR',
    message: 'id must be a UUID',
  },
  401: {
    name: 'Unauthenticated',
    description: 'With authentication: the token or API key is missing, not valid or expired.',
    code: 'SYS_AUTH_TOKEN_EXPIRED',
    message: 'the token has expired',
  },
  403: {
    name: 'Forbidden',
    description: 'The caller lacks the permission, or a web page of another origin sent the request.',
    code: 'SYS_AUTH_PERMISSION_DENIED',
    message: 'this needs the permission dlq:messages:delete',
  },
  404: {
    name: 'NotFound',
    description: 'There is no such item.',
    code: 'SYS_JOBS_NOT_FOUND',
    message: 'job not found: 01a1dfae-c3a5-7000-8007-f35eedc32390',
  },
  409: {
    name: 'Conflict',
    description:
      'The state of the item does not allow it, or another transaction has locked it; with `Retry-After` the same request may succeed later.',
    code: 'SYS_JOBS_BUSY',
    message: 'the job is locked by another transaction; try again',
  },
  412: {
    name: 'PreconditionFailed',
    description: 'The item has changed since its `ETag` was read; read it again.',
    code: 'SYS_DLQ_PRECONDITION_FAILED',
    message: 'the message has changed since it was read: its ETag is now "1-42"',
  },
  413: {
    name: 'TooLarge',
    description: 'The body, one of its fields or the answer is too large.',
    code: 'SYS_JOBS_TOO_LARGE',
    message: 'the body must not be larger than 1048576 bytes',
  },
  415: {
    name: 'UnsupportedMediaType',
    description: 'The body is not JSON.',
    code: 'SYS_JOBS_UNSUPPORTED_MEDIA_TYPE',
    message: 'the content type must be application/json',
  },
  416: {
    name: 'RangeNotSatisfiable',
    description: 'The range begins behind the end; `Content-Range` has the size.',
    code: 'SYS_DLQ_RANGE_NOT_SATISFIABLE',
    message: 'the range is not satisfiable: there are 512 bytes',
  },
  421: {
    name: 'MisdirectedRequest',
    description: 'The Host header names another server; see `server.allowed_hosts`.',
    code: 'SYS_HTTP_MISDIRECTED_REQUEST',
    message: 'unknown host example.com; add the name to server.allowed_hosts',
  },
  422: {
    name: 'Unprocessable',
    description: 'The request is valid, but cannot be done with this item.',
    code: 'SYS_OUTBOX_IDEMPOTENCY_MISMATCH',
    message: 'the idempotency key was used for another request',
  },
  428: {
    name: 'PreconditionRequired',
    description: 'The header `If-Match` is missing.',
    code: 'SYS_DLQ_PRECONDITION_REQUIRED',
    message: 'the header If-Match is missing: send the ETag with which the item was read',
  },
  429: {
    name: 'TooManyRequests',
    description: 'The caller has sent too many of these requests in a minute.',
    code: 'SYS_RATE_LIMIT_EXCEEDED',
    message: 'at most 10 such requests per minute; try again in 42 s',
  },
  500: {
    name: 'InternalError',
    description: 'A defect of the server.',
    code: 'SYS_JOBS_INTERNAL_ERROR',
    message: 'internal error',
  },
  503: {
    name: 'Unavailable',
    description: 'The database, the broker or memory is unavailable; try again later.',
    code: 'SYS_JOBS_UNAVAILABLE',
    message: 'the database is unavailable',
  },
};

/** Statuses whose answers may say when to try again. */
const retryable: ReadonlySet<number> = new Set(
  (['conflict', 'rate_limited', 'unavailable'] satisfies ErrorKind[]).map((kind) => statusOf(kind)),
);

const requestIdHeader = { 'x-request-id': { $ref: '#/components/headers/RequestId' } };

function errorComponent(status: number, { description, code, message }: ErrorPart): object {
  const retryAfter = { 'retry-after': { $ref: '#/components/headers/RetryAfter' } };
  const example = { error: { code, message, request_id: 'req_5f2b9c0d1e3a', details: [] } };
  return {
    description,
    headers: { ...requestIdHeader, ...(retryable.has(status) ? retryAfter : {}) },
    content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorBody' }, example } },
  };
}

export const sharedComponents = {
  responses: Object.fromEntries(
    Object.entries(errorParts).map(([status, part]) => [part.name, errorComponent(Number(status), part)]),
  ),
  headers: {
    RequestId: {
      description: 'The `x-request-id` of the request, or a new one; also in the error and the logs.',
      schema: { type: 'string', pattern: '^[\\x20-\\x7e]{1,128}$' },
    },
    RetryAfter: {
      description: 'After how many seconds to try again.',
      schema: { type: 'integer', minimum: 0 },
    },
    ETag: {
      description: 'Changes whenever the item does; for `If-Match`.',
      schema: { type: 'string' },
      example: '"0-42"',
    },
    IdempotentReplayed: {
      description: '`true` if an earlier request had this idempotency key.',
      schema: { type: 'string', const: 'true' },
    },
  },
  parameters: {
    Actor: {
      name: 'x-actor',
      in: 'header',
      required: false,
      description: 'Who acts, for the audit log; UTF-8, cut to 255 characters. Default: `anonymous`.',
      schema: { type: 'string' },
      example: 'alice@example.com',
    },
    RequestId: {
      name: 'x-request-id',
      in: 'header',
      required: false,
      description: 'Printable ASCII; any other value is replaced by a new id.',
      schema: { type: 'string', pattern: '^[\\x20-\\x7e]{1,128}$' },
    },
  },
};

/** Every answer carries the request id, a replayed one says so, and some carry the item's entity tag. */
export function headersOf(
  status: string,
  { takesKey, hasEtag }: Readonly<{ takesKey: boolean; hasEtag: boolean }>,
): object {
  const replayed = { 'idempotent-replayed': { $ref: '#/components/headers/IdempotentReplayed' } };
  const etag = { etag: { $ref: '#/components/headers/ETag' } };
  const isOk = status === '200' || status === '206';
  return { ...requestIdHeader, ...(takesKey && isOk ? replayed : {}), ...(hasEtag && isOk ? etag : {}) };
}

/** The error answers of an operation, in addition to those that it names. */
export function errorResponsesOf(
  hasBody: boolean,
  named: readonly NamedErrorStatus[],
): Readonly<Record<string, object>> {
  return errorResponsesWith([400, 401, 403, ...named, 413, ...(hasBody ? [415] : []), 421, 500, 503]);
}

export function errorResponsesWith(statuses: readonly number[]): Readonly<Record<string, object>> {
  return Object.fromEntries(
    statuses
      .toSorted((a, b) => a - b)
      .map((status) => [status, { $ref: `#/components/responses/${errorParts[status]?.name}` }]),
  );
}
