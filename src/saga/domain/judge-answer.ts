import { codeOf, messageOf } from '../../kernel/errors.ts';
import { askedWaitMs, describeAnswer, type HttpAnswer } from '../../kernel/http-answer.ts';
import { cleanText } from '../../kernel/text.ts';
import type { LogStatus } from './saga-state.ts';
import { MAX_OUTPUT_BYTES, readOutput, type Output } from './step-output.ts';

/**
 * The class of an answer. `refused` and `defect` are certain: it had no effect, and retrying is useless. `working`: it
 * has begun; poll later. `unknown`: it may have had its effect, unless it was certainly not sent.
 */
export type Answer =
  /** `note`: why it counts as done if its service did not say so. */
  | Readonly<{ class: 'done'; output: unknown; note?: string }>
  /** `output`: the body; undefined if it cannot be read. */
  | Readonly<{ class: 'working'; output?: unknown; retryAfterMs?: number | undefined }>
  | Failure;

export type Failure = Readonly<{
  class: 'refused' | 'defect' | 'unknown';
  detail: string;
  /** No answer: a timeout, a lost connection or a lost worker. */
  isTimeout: boolean;
  /** No byte of the request was sent. */
  isUnsent: boolean;
  retryAfterMs?: number | undefined;
  /** Of `unknown`: retrying is useless, even if the service is idempotent. */
  isFinal?: boolean;
  /** The service seems down. */
  isDown?: boolean;
  /** The subject of the call does not exist. */
  isNotFound?: boolean;
}>;

/** A gRPC response. */
export type GrpcAnswer = Readonly<{
  code: number;
  details: string;
  /** By name in lower case. */
  trailers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The message as JSON; undefined unless the code is OK. */
  message: unknown;
  /** The channel never had a connection, so the request was not sent. */
  isUnsent?: boolean;
}>;

const MAX_DETAIL_BYTES = 800;

export function judgeHttpAnswer(answer: HttpAnswer, now: Date): Answer {
  const { status } = answer;
  const retryAfterMs = askedWaitMs(answer, now);
  if (status === 202) return judgeWorking(answer, retryAfterMs);
  if (status >= 200 && status <= 299) return judgeHttpSuccess(answer);
  return {
    ...answered(classOfHttp(status), describeAnswer(answer), retryAfterMs),
    ...(status >= 500 ? { isDown: true } : {}),
    ...(status === 404 || status === 410 ? { isNotFound: true } : {}),
  };
}

function classOfHttp(status: number): Failure['class'] {
  if (status === 409 || status === 422) return 'refused';
  if (status === 408 || status === 425 || status === 429) return 'unknown';
  return status >= 300 && status <= 499 ? 'defect' : 'unknown';
}

function judgeWorking(answer: HttpAnswer, retryAfterMs: number | undefined): Answer {
  const read = readBody(answer);
  return { class: 'working', ...(read.ok ? { output: read.value } : {}), retryAfterMs };
}

function readBody({ body, isBodyCut }: HttpAnswer): Output {
  const isTooLarge = isBodyCut || body.length > MAX_OUTPUT_BYTES;
  return isTooLarge ? { ok: false, flaw: 'too large' } : readOutput(body);
}

/** A login page or a truncated response is no proof of success. */
function judgeHttpSuccess(answer: HttpAnswer): Answer {
  const read = readBody(answer);
  if (read.ok) return { class: 'done', output: read.value };
  return answered('unknown', describeAnswer(answer, read.flaw));
}

const GRPC = {
  OK: 0,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

export function judgeGrpcAnswer(answer: GrpcAnswer, now: Date): Answer {
  const { code, trailers } = answer;
  const retryAfterMs = askedWaitMs(
    { status: 0, headers: trailers, body: Buffer.of(), isBodyCut: false },
    now,
  );
  if (code === GRPC.OK) return judgeGrpcSuccess(answer);
  const isWorking = [trailers['saga-result']].flat().includes('working');
  if (code === GRPC.UNAVAILABLE && isWorking) return { class: 'working', output: null, retryAfterMs };
  const detail = describeGrpc(answer);
  const failure = answered(classOfGrpc(code), detail, retryAfterMs);
  const isUnsent = failure.class === 'unknown' && answer.isUnsent === true;
  return {
    ...failure,
    isUnsent,
    isTimeout: isUnsent || code === GRPC.DEADLINE_EXCEEDED,
    ...(grpcServerErrors.has(code) ? { isDown: true } : {}),
    ...(code === GRPC.NOT_FOUND ? { isNotFound: true } : {}),
  };
}

/** The counterparts of 5xx and a timeout over HTTP. */
const grpcServerErrors: ReadonlySet<number> = new Set([
  GRPC.UNKNOWN,
  GRPC.DEADLINE_EXCEEDED,
  GRPC.INTERNAL,
  GRPC.UNAVAILABLE,
]);

function classOfGrpc(code: number): Failure['class'] {
  switch (code) {
    case GRPC.ABORTED:
    case GRPC.FAILED_PRECONDITION:
    case GRPC.ALREADY_EXISTS:
      return 'refused';
    case GRPC.INVALID_ARGUMENT:
    case GRPC.NOT_FOUND:
    case GRPC.PERMISSION_DENIED:
    case GRPC.UNAUTHENTICATED:
    case GRPC.OUT_OF_RANGE:
    case GRPC.UNIMPLEMENTED:
      return 'defect';
    default:
      return 'unknown';
  }
}

function judgeGrpcSuccess(answer: GrpcAnswer): Answer {
  const text = Buffer.from(JSON.stringify(answer.message ?? null));
  const read: Output = text.length > MAX_OUTPUT_BYTES ? { ok: false, flaw: 'too large' } : readOutput(text);
  if (read.ok) return { class: 'done', output: read.value };
  return answered('unknown', `${describeGrpc(answer)}, ${read.flaw}`);
}

function describeGrpc({ code, details }: GrpcAnswer): string {
  return cleanText(details === '' ? `gRPC ${code}` : `gRPC ${code}: ${details}`, MAX_DETAIL_BYTES);
}

function answered(kind: Failure['class'], detail: string, retryAfterMs?: number): Failure {
  return { class: kind, detail, isTimeout: false, isUnsent: false, retryAfterMs };
}

/** No connection was established. */
const UNSENT_CODES: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']);

/** No answer: a timeout, a lost connection, or no connection in the first place. */
export function judgeCallError(error: unknown): Failure {
  const detail = cleanText(messageOf(error), MAX_DETAIL_BYTES);
  return { class: 'unknown', detail, isTimeout: true, isUnsent: isUnsentError(error), isDown: true };
}

/** Some clients wrap the socket's error. */
function isUnsentError(error: unknown, depth = 0): boolean {
  if (UNSENT_CODES.has(codeOf(error) ?? '')) return true;
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause !== undefined && depth < 5 && isUnsentError(cause, depth + 1);
}

/** The request could not be built from its mapping: a defect of the workflow. Nothing is sent. */
export function judgeMappingError(detail: string): Failure {
  return {
    class: 'defect',
    detail: cleanText(detail, MAX_DETAIL_BYTES),
    isTimeout: false,
    isUnsent: true,
  };
}

/** The log status of an ended attempt. */
export function logStatusOf(answer: Exclude<Answer, { class: 'working' }>): LogStatus {
  if (answer.class === 'done') return 'SUCCESS';
  return answer.isTimeout ? 'TIMEOUT' : 'FAILED';
}
