import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { sleep } from '../../../kernel/clock.ts';
import { messageOf } from '../../../kernel/errors.ts';
import type { ServiceSettings } from '../../domain/service-settings.ts';
import { contextOf, readTraceContext } from '../../../platform/telemetry/trace-context.ts';
import { inSpan } from '../../../platform/telemetry/with-span.ts';
import type { Answer } from '../../domain/judge-answer.ts';
import type { OpenService, OutgoingCall, SendCall } from './service.ts';
import type { AskMethods } from '../../domain/workflow/check-methods.ts';
import { openGrpcService } from './grpc-service.ts';
import { openHttpService } from './http-service.ts';

export type Services = Readonly<{
  of(name: string): (ServiceSettings & Readonly<{ open: OpenService }>) | undefined;
  send: SendCall;
  close(): Promise<void>;
}>;

export function openServices(settings: readonly ServiceSettings[]): Services {
  const services = new Map(
    settings.map((each) => [
      each.name,
      { ...each, open: each.type === 'http' ? openHttpService(each) : openGrpcService(each) },
    ]),
  );
  return {
    of: (name) => services.get(name),
    async send(call) {
      const service = services.get(call.call.service);
      const failure = { class: 'unknown', isTimeout: false } as const;
      if (service === undefined)
        return { ...failure, detail: `the service ${call.call.service} is not configured`, isUnsent: true };
      try {
        return await traced(service.type, call, () => service.open.send(call));
      } catch (error) {
        // A bug of ours: it is unknown whether the request was sent.
        return { ...failure, detail: `the call failed: ${messageOf(error)}`, isUnsent: false };
      }
    },
    async close() {
      await Promise.all([...services.values()].map(({ open }) => open.close()));
    },
  };
}

const tracer = trace.getTracer('redrive');

/** A span of the call, in the trace with which the saga was started. */
function traced(type: string, outgoing: OutgoingCall, send: () => Promise<Answer>): Promise<Answer> {
  const { saga, call, stepName } = outgoing;
  const attributes = {
    'saga.id': saga.id,
    'saga.step': stepName,
    'saga.action': call.op,
    'saga.attempt': call.attempt,
    'peer.service': call.service,
    'network.protocol.name': type,
  };
  const parent = contextOf(readTraceContext({ traceparent: saga.trace ?? undefined }));
  return inSpan(
    tracer,
    `saga step ${stepName}`,
    { kind: SpanKind.CLIENT, attributes, parent },
    async (span) => {
      const answer = await send();
      span.setAttribute('saga.answer', answer.class);
      if (answer.class !== 'done') span.setStatus({ code: SpanStatusCode.ERROR, message: answer.class });
      return answer;
    },
  );
}

/** A service that takes longer to describe itself counts as down. */
const methodsWithinMs = 3000;

/** Asks services for their methods; `local`: only those with .proto files, the others count as `any`. */
export function createAskMethods(services: Pick<Services, 'of'>, whom: 'all' | 'local' = 'all'): AskMethods {
  return async (name) => {
    const service = services.of(name);
    if (service === undefined || (whom === 'local' && !(service.type === 'grpc' && service.proto !== null)))
      return 'any';
    const answered = new AbortController();
    const tooLong = sleep(methodsWithinMs, answered.signal).then(() => ({
      unknown: `timed out after ${methodsWithinMs} ms`,
    }));
    try {
      return await Promise.race([service.open.methods().then((methods) => methods ?? 'any'), tooLong]);
    } catch (error) {
      return { unknown: messageOf(error) };
    } finally {
      answered.abort();
    }
  };
}
