import { retryAfterMs } from '../../../kernel/backoff.ts';
import { messageOf } from '../../../kernel/errors.ts';
import { openGrpcChannel, type GrpcAnswer, type GrpcCode } from '../../../platform/grpc/grpc-channel.ts';
import { loadProtoFiles, type MethodType } from '../../../platform/grpc/proto-methods.ts';
import { askForTypes } from '../../../platform/grpc/reflection.ts';
import { UsageError } from '../../exit-code.ts';
import {
  MAX_ANSWER_BYTES,
  MAX_POLL_MS,
  noAnswer,
  pollUntilEnd,
  sagaHeadersOf,
  unreachable,
  type ParticipantOptions,
  type ProbeCall,
  type ProbedParticipant,
  type ProbeReply,
} from './probed-participant.ts';

/** The corresponding HTTP statuses. */
const statuses: Partial<Record<GrpcCode, number>> = {
  ABORTED: 409,
  ALREADY_EXISTS: 409,
  FAILED_PRECONDITION: 422,
  INVALID_ARGUMENT: 400,
  DEADLINE_EXCEEDED: 408,
  NOT_FOUND: 410,
  UNAVAILABLE: 503,
};

/** Methods come from the .proto files, or from server reflection. */
export async function openGrpcParticipant(
  options: ParticipantOptions & Readonly<{ proto: string | undefined }>,
): Promise<ProbedParticipant> {
  const { url, bodies, timeoutMs } = options;
  const isTls = url.protocol === 'grpcs:';
  const port = Number(url.port || (isTls ? 443 : 80));
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const tls = isTls ? {} : undefined;
  const channel = openGrpcChannel({ host, port, tls, maxAnswerBytes: MAX_ANSWER_BYTES });
  const methods = await methodsOf(options, () => askForTypes(channel)).catch((error: unknown) => {
    channel.close();
    throw error;
  });
  const send = async (call: ProbeCall): Promise<ProbeReply> => {
    const method = methods[call.op];
    const beganAtMs = performance.now();
    const answer = await channel.call({
      path: method.path,
      request: encode(method, call.body === undefined ? bodies[call.op] : call.body),
      metadata: { ...options.headers, ...sagaHeadersOf(call) },
      timeoutMs,
      signal: new AbortController().signal,
    });
    if (answer.end === 'not_sent') throw unreachable(url, answer.detail);
    const isOurTimeout =
      answer.end === 'failed' &&
      answer.code === 'DEADLINE_EXCEEDED' &&
      performance.now() - beganAtMs >= timeoutMs;
    return isOurTimeout ? noAnswer(`timed out after ${timeoutMs} ms`) : replyOf(answer, method);
  };
  return {
    ask: (call) => pollUntilEnd(() => send(call), timeoutMs),
    close: async () => channel.close(),
  };
}

async function methodsOf(
  { url, methods, proto }: Parameters<typeof openGrpcParticipant>[0],
  ask: () => ReturnType<typeof askForTypes>,
): Promise<Readonly<Record<ProbeCall['op'], MethodType>>> {
  const types =
    proto === undefined
      ? await ask().catch((error: unknown) => {
          throw unreachable(url, `server reflection failed (give --proto): ${messageOf(error)}`);
        })
      : readProto(proto);
  const find = (name: string): MethodType => {
    const method = types.method(name);
    if (method === null || method.isStreaming) throw new UsageError(`no method ${name}`);
    return method;
  };
  return { action: find(methods.action), undo: find(methods.undo) };
}

function readProto(path: string): ReturnType<typeof loadProtoFiles> {
  try {
    return loadProtoFiles(path);
  } catch (error) {
    throw new UsageError(`cannot read ${path}: ${messageOf(error)}`);
  }
}

function encode(method: MethodType, body: unknown): Buffer {
  try {
    return method.encode(body);
  } catch (error) {
    throw new UsageError(`the body is not a valid message for ${method.path}: ${messageOf(error)}`);
  }
}

function replyOf(answer: Exclude<GrpcAnswer, { end: 'not_sent' }>, method: MethodType): ProbeReply {
  if (answer.end === 'answered') {
    const text = JSON.stringify(method.decode(answer.response));
    return { status: 200, label: 'gRPC OK', text, result: null, retryAfterMs: null };
  }
  const { code, detail, trailers } = answer;
  const result = trailers['saga-result'] ?? null;
  const isWorking = code === 'UNAVAILABLE' && result === 'working';
  return {
    status: isWorking ? 202 : (statuses[code] ?? 500),
    label: `gRPC ${code}`,
    text: detail,
    result,
    retryAfterMs: retryAfterMs(trailers['retry-after'], new Date(), MAX_POLL_MS) ?? null,
  };
}
