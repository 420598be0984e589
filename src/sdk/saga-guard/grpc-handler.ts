import { cleanText } from '../../kernel/text.ts';
import type { GuardReply, SagaResult } from './guard-reply.ts';
import type { Guarded } from './guarded-action.ts';

/** The part of Metadata of @grpc/grpc-js that is used; the service may have another copy of the package. */
export type GrpcMetadata<Self> = {
  get(key: string): readonly (string | Buffer)[];
  getMap(): Readonly<Record<string, string | Buffer>>;
  clone(): Self;
  remove(key: string): void;
  set(key: string, value: string): void;
};

type Failure<Metadata> = { code: number; details: string; metadata: Metadata };

const code = {
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;

const codes: Readonly<Record<SagaResult, number>> = {
  working: code.UNAVAILABLE,
  'already-compensated': code.ABORTED,
  mismatch: code.FAILED_PRECONDITION,
  'too-late': code.DEADLINE_EXCEEDED,
  forgotten: code.NOT_FOUND,
  'bad-request': code.INVALID_ARGUMENT,
  failed: code.INTERNAL,
};

/** The size of trailers is limited. */
const MAX_DETAILS_BYTES = 1000;

/**
 * For `server.addService(service, { reserve: grpcHandler(guarded) })`. What a handler returns is the response message;
 * it is stored as JSON, so 64-bit numbers and bytes must be strings.
 */
export function grpcHandler(guarded: Guarded) {
  return <Metadata extends GrpcMetadata<Metadata>>(
    call: UnaryCall<Metadata>,
    callback: Callback<Metadata>,
  ): void => void answer(guarded, call, callback);
}

type UnaryCall<Metadata> = Readonly<{ metadata: Metadata; request: unknown }>;

/** `never` is assignable to the callback of every method; the handler is responsible for the type of the response. */
type Callback<Metadata> = (failure: Failure<Metadata> | null, answer?: never) => void;

async function answer<Metadata extends GrpcMetadata<Metadata>>(
  guarded: Guarded,
  { metadata, request }: UnaryCall<Metadata>,
  callback: Callback<Metadata>,
): Promise<void> {
  const names = Object.keys(metadata.getMap());
  const headers = Object.fromEntries(names.map((name) => [name, metadata.get(name).map(String)]));
  const reply = await guarded({ headers, body: plainMessage(request) });
  if (reply.status > 299 || reply.result !== null) callback(failureOf(reply, emptied(metadata)));
  else callback(null, messageOf(reply) as never);
}

/** A missing message counts as one without fields. */
function messageOf({ body }: GuardReply): unknown {
  return (body === null ? null : JSON.parse(body)) ?? {};
}

/** Messages may be instances of generated classes; only their JSON matters. */
function plainMessage(message: unknown): unknown {
  return JSON.parse(JSON.stringify(message ?? null, bigintAsText)) as unknown;
}

function bigintAsText(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

function failureOf<Metadata extends GrpcMetadata<Metadata>>(
  { status, body, result, retryAfterSecs }: GuardReply,
  metadata: Metadata,
): Failure<Metadata> {
  if (result !== null) metadata.set('saga-result', result);
  if (retryAfterSecs !== null) metadata.set('retry-after', String(retryAfterSecs));
  const refusal = status === 422 ? code.FAILED_PRECONDITION : code.ABORTED;
  return {
    code: result === null ? refusal : codes[result],
    details: cleanText(body ?? '', MAX_DETAILS_BYTES),
    metadata,
  };
}

/** An empty Metadata of the same class. */
function emptied<Metadata extends GrpcMetadata<Metadata>>(metadata: Metadata): Metadata {
  const copy = metadata.clone();
  for (const name of Object.keys(copy.getMap())) copy.remove(name);
  return copy;
}
