import {
  AuthenticationError,
  protocolErrors,
  protocolErrorsCodesById,
  ResponseError,
  UserError,
} from '@platformatic/kafka';
import { AppError, codeOf, messageOf } from '../../../kernel/errors.ts';
import type { FetchErrorKind } from '../port.ts';

/** Kafka's own name for a number of its protocol, `NONE` for 0. */
export const protocolCode = (errorCode: number): string =>
  protocolErrorsCodesById[errorCode] ?? `KAFKA_ERROR_${errorCode}`;

export const protocolMessage = (code: string): string => protocolErrors[code]?.message ?? code;

export const isRetriable = (code: string): boolean => protocolErrors[code]?.canRetry ?? true;

/**
 * The whole response, also when a part of it carries an error code: then the client throws, and the response,
 * with every good part, is inside the error. Callers look at the error codes themselves.
 */
export async function responseOf<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ResponseError) return error['response'] as T;
    throw error;
  }
}

/** What a partition's error code in a fetch means to the reader. */
export function fetchErrorKind(code: string): FetchErrorKind {
  switch (code) {
    case 'OFFSET_OUT_OF_RANGE':
      return 'out_of_range';
    case 'UNKNOWN_TOPIC_ID':
    case 'UNKNOWN_TOPIC_OR_PARTITION':
    case 'INCONSISTENT_TOPIC_ID':
    case 'INVALID_TOPIC_EXCEPTION':
      return 'gone';
    case 'NOT_LEADER_OR_FOLLOWER':
    case 'FENCED_LEADER_EPOCH':
    case 'UNKNOWN_LEADER_EPOCH':
      return 'moved';
    case 'TOPIC_AUTHORIZATION_FAILED':
    case 'CLUSTER_AUTHORIZATION_FAILED':
      return 'denied';
    default:
      return 'unavailable';
  }
}

/**
 * What went wrong between us and the broker, for somebody who can only give up. The client buries a wrong
 * password under several layers of "cannot connect": it is found and named, because waiting does not cure it.
 */
export function toAppError(error: unknown): AppError {
  const layers = [...errorLayers(error)];
  const known = layers.find((layer) => layer instanceof AppError);
  if (known) return known;
  const refused = layers.find(isAuthenticationFailure);
  if (refused !== undefined)
    return new AppError(
      'SYS_BROKER_AUTHENTICATION_FAILED',
      'internal',
      `the broker refused the credentials: ${messageOf(refused)}`,
      { cause: error },
    );
  const tls = layers.find(isTlsFailure);
  if (tls !== undefined)
    return new AppError(
      'SYS_BROKER_TLS_FAILED',
      'internal',
      `no TLS connection to the broker: ${messageOf(tls)}`,
      {
        cause: error,
      },
    );
  const why = [...new Set(layers.map(messageOf))].join(': ');
  return new AppError('SYS_BROKER_UNAVAILABLE', 'unavailable', `the broker cannot be reached: ${why}`, {
    cause: error,
  });
}

/** An error, what caused it and what it collected, from the outside in. */
function* errorLayers(error: unknown, depth = 0): Generator {
  if (error === undefined || error === null || depth > 10) return;
  yield error;
  if (error instanceof AggregateError) for (const inner of error.errors) yield* errorLayers(inner, depth + 1);
  if (error instanceof Error) yield* errorLayers(error.cause, depth + 1);
}

const authenticationCodes: ReadonlySet<unknown> = new Set([
  'SASL_AUTHENTICATION_FAILED',
  'UNSUPPORTED_SASL_MECHANISM',
  'ILLEGAL_SASL_STATE',
]);

const isAuthenticationFailure = (error: unknown): boolean =>
  error instanceof AuthenticationError || authenticationCodes.has((error as { apiId?: unknown }).apiId);

const isTlsFailure = (error: unknown): boolean =>
  (error instanceof UserError && /TLS/.test(error.message)) ||
  /^ERR_TLS_|CERT|UNABLE_TO_/.test(codeOf(error) ?? '');

/** Trouble with the connection, as opposed to an answer that came but cannot be read. */
export const isConnectionTrouble = (error: unknown): boolean =>
  error instanceof AppError ||
  /^PLT_KFK_(NETWORK|TIMEOUT|AUTHENTICATION|USER|UNEXPECTED_CORRELATION_ID)$/.test(codeOf(error) ?? '');
