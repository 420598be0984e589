import { status } from '@grpc/grpc-js';
import { messageOf } from '../../../kernel/errors.ts';
import { openGrpcChannel, type GrpcAnswer } from '../../../platform/grpc/grpc-channel.ts';
import { loadProtoFiles, type MethodType, type ProtoTypes } from '../../../platform/grpc/proto-methods.ts';
import { askForTypes } from '../../../platform/grpc/reflection.ts';
import { readHeaders } from '../../../platform/http-client/outgoing-headers.ts';
import { judgeGrpcAnswer, judgeMappingError, type Answer, type Failure } from '../../domain/judge-answer.ts';
import type { GrpcServiceSettings } from '../../domain/service-settings.ts';
import { MAX_OUTPUT_BYTES } from '../../domain/step-output.ts';
import type { CallableMethod } from '../../domain/workflow/check-methods.ts';
import { sagaHeaders } from './saga-headers.ts';
import type { OpenService } from './service.ts';

/** Opens a participant that is called over gRPC, with its .proto files or with server reflection. */
export function openGrpcService(settings: GrpcServiceSettings): OpenService {
  const { host, port, tls, proto } = settings;
  const channel = openGrpcChannel({ host, port, tls, maxAnswerBytes: 2 * MAX_OUTPUT_BYTES });
  let types: Promise<ProtoTypes> | null = null;
  const readTypes = (): Promise<ProtoTypes> => {
    types ??= proto === null ? askForTypes(channel) : Promise.resolve().then(() => loadProtoFiles(proto));
    // A server that is down may describe itself later.
    types.catch(() => void (types = null));
    return types;
  };

  /** A newer deployment of the server may have methods that an older one did not. */
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
        // If reflection fails, the service is down; unreadable files are not its fault.
        return { ...unsent(`its methods are unknown: ${messageOf(error)}`), isDown: proto === null };
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
      // Replaces the cached types; if this fails, those stay.
      types = Promise.resolve(known);
      return new Map(known.methods().map((name) => [name, callable(known.method(name))]));
    },
    connect: (withinMs) => channel.connect(withinMs),
    async close() {
      channel.close();
    },
  };
}

function callable(method: MethodType | null): CallableMethod {
  return {
    isStream: method?.isStreaming !== false,
    unknownFields: (input) => method?.unknownFields(input) ?? [],
  };
}

function judge(answer: GrpcAnswer, method: MethodType): Answer {
  const now = new Date();
  switch (answer.end) {
    case 'not_sent':
      return { ...unsent(answer.detail), isDown: answer.isUnreachable };
    case 'failed': {
      const { code, detail, trailers } = answer;
      return judgeGrpcAnswer({ code: status[code], details: detail, trailers, message: undefined }, now);
    }
    case 'answered':
      try {
        const message = method.decode(answer.response);
        return judgeGrpcAnswer({ code: status.OK, details: '', trailers: {}, message }, now);
      } catch (error) {
        const detail = `the response cannot be decoded: ${messageOf(error)}`;
        return { class: 'unknown', detail, isTimeout: false, isUnsent: false };
      }
  }
}

function unsent(detail: string): Failure {
  return { class: 'unknown', detail, isTimeout: true, isUnsent: true };
}
