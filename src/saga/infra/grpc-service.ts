import { status } from '@grpc/grpc-js';
import { messageOf } from '../../kernel/errors.ts';
import { openGrpcChannel, type GrpcAnswer } from '../../platform/grpc/grpc-channel.ts';
import { loadProtoFiles, type MethodType, type ProtoTypes } from '../../platform/grpc/proto-methods.ts';
import { askForTypes } from '../../platform/grpc/reflection.ts';
import { readHeaders } from '../../platform/http-client/outgoing-headers.ts';
import { judgeGrpcAnswer, judgeMappingError, type Answer, type Failure } from '../domain/judge-answer.ts';
import type { GrpcServiceSettings } from '../domain/service-settings.ts';
import { MAX_OUTPUT_BYTES } from '../domain/step-output.ts';
import { sagaHeaders } from '../usecase/saga-headers.ts';
import type { OpenService } from './open-services.ts';

/** A participant that is called over gRPC, by its .proto files or by what it tells about itself. */
export function openGrpcService(settings: GrpcServiceSettings): OpenService {
  const { host, port, tls, proto } = settings;
  const channel = openGrpcChannel({ host, port, tls, maxAnswerBytes: 2 * MAX_OUTPUT_BYTES });
  let types: Promise<ProtoTypes> | null = null;
  const readTypes = (): Promise<ProtoTypes> => {
    types ??= proto === null ? askForTypes(channel) : Promise.resolve().then(() => loadProtoFiles(proto));
    // A server that is away now may describe itself later.
    types.catch(() => void (types = null));
    return types;
  };

  /** A later deployment of a server that describes itself may have what an earlier one had not. */
  const askAgain = (): Promise<ProtoTypes> => {
    if (proto === null) types = null;
    return readTypes();
  };

  return {
    async send(call) {
      let method: MethodType | null;
      try {
        method = (await readTypes()).method(call.method) ?? (await askAgain()).method(call.method);
      } catch (error) {
        return unsent(`its methods are not known: ${messageOf(error)}`);
      }
      if (method === null || method.isStreaming)
        return judgeMappingError(`there is no method ${call.method}, or it is a stream`);
      const configured = readHeaders(settings.headers);
      if ('unreadable' in configured) return unsent(configured.unreadable);
      let request: Buffer;
      try {
        request = method.encode(call.request ?? {}, { ignoresUnknown: call.isPayload });
      } catch (error) {
        return judgeMappingError(messageOf(error));
      }
      const { 'user-agent': _agent, ...metadata } = { ...configured.headers, ...sagaHeaders(call) } as Record<
        string,
        string
      >;
      const answer = await channel.call({
        path: method.path,
        request,
        metadata,
        timeoutMs: call.call.timeoutMs,
        signal: new AbortController().signal,
        mayBegin: call.mayBegin,
      });
      return judge(answer, method);
    },
    async methods() {
      const known = proto === null ? await askForTypes(channel) : await readTypes();
      // What it says now is newer than what was kept, which stays where it says nothing.
      types = Promise.resolve(known);
      return new Map(
        known.methods().map((name) => [name, known.method(name)?.isStreaming === false ? 'unary' : 'stream']),
      );
    },
    async close() {
      channel.close();
    },
  };
}

function judge(answer: GrpcAnswer, method: MethodType): Answer {
  const now = new Date();
  switch (answer.end) {
    case 'not_sent':
      return unsent(answer.detail);
    case 'failed': {
      const { code, detail, trailers } = answer;
      return judgeGrpcAnswer({ code: status[code], details: detail, trailers, message: undefined }, now);
    }
    case 'answered':
      try {
        const message = method.decode(answer.response);
        return judgeGrpcAnswer({ code: status.OK, details: '', trailers: {}, message }, now);
      } catch (error) {
        const detail = `the answer cannot be read: ${messageOf(error)}`;
        return { class: 'unknown', detail, isTimeout: false, isUnsent: false };
      }
  }
}

function unsent(detail: string): Failure {
  return { class: 'unknown', detail, isTimeout: true, isUnsent: true };
}
