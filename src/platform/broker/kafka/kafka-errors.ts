import {
  AuthenticationError,
  protocolErrors,
  protocolErrorsCodesById,
  ResponseError,
  UserError,
} from '@platformatic/kafka';
import { AppError, codeOf, messageOf } from '../../../kernel/errors.ts';
import type { FetchErrorKind, PublishFault } from '../port.ts';

/** Kafka's name of an error code, `NONE` for 0. */
export const protocolCode = (errorCode: number): string =>
  protocolErrorsCodesById[errorCode] ?? `KAFKA_ERROR_${errorCode}`;

export const protocolMessage = (code: string): string => protocolErrors[code]?.message ?? code;

export const isRetriable = (code: string): boolean => protocolErrors[code]?.canRetry ?? true;

const topicCodes: ReadonlySet<string> = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'UNKNOWN_TOPIC_ID',
  'INCONSISTENT_TOPIC_ID',
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
]);

/** The broker does not know the session any more: retry with a new one. */
export const sessionCodes: ReadonlySet<string> = new Set([
  'OUT_OF_ORDER_SEQUENCE_NUMBER',
  'UNKNOWN_PRODUCER_ID',
  'INVALID_PRODUCER_EPOCH',
  'INVALID_PRODUCER_ID_MAPPING',
  'DUPLICATE_SEQUENCE_NUMBER',
]);

/** Connection, leader and quorum. */
const clusterCodes: ReadonlySet<string> = new Set([
  ...sessionCodes,
  'BROKER_NOT_AVAILABLE',
  'NETWORK_EXCEPTION',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_OR_FOLLOWER',
  'REPLICA_NOT_AVAILABLE',
  'FENCED_LEADER_EPOCH',
  'UNKNOWN_LEADER_EPOCH',
  'NOT_ENOUGH_REPLICAS',
]);

/** The cause of a refused batch. Codes that are not listed are the fault of the records. */
export function faultOf(code: string): PublishFault {
  if (topicCodes.has(code)) return 'topic';
  return clusterCodes.has(code) ? 'cluster' : 'record';
}

/** The same if nothing was sent: then no record can be the cause. */
export const faultBeforeSend = (code: string): PublishFault => (topicCodes.has(code) ? 'topic' : 'cluster');

/**
 * The whole response, even if a part of it has an error code: then the client throws an error that contains the
 * response. Callers check the error codes themselves.
 */
export async function responseOf<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ResponseError) return error['response'] as T;
    throw error;
  }
}

/** What a partition's error code means for the reader. */
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
 * An error of the connection or of the broker as an AppError. The client wraps a wrong password in several layers of
 * "cannot connect": it is unwrapped, because a retry does not help.
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

/** An error with its causes and its aggregated errors, outermost first. */
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

/** An error of the connection, as opposed to a response that cannot be parsed. */
export const isConnectionTrouble = (error: unknown): boolean =>
  error instanceof AppError ||
  /^PLT_KFK_(NETWORK|TIMEOUT|AUTHENTICATION|USER|UNEXPECTED_CORRELATION_ID)$/.test(codeOf(error) ?? '');
