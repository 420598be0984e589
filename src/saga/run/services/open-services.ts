import { sleep } from '../../../kernel/clock.ts';
import { messageOf } from '../../../kernel/errors.ts';
import type { ServiceSettings } from '../../domain/service-settings.ts';
import type { OpenService, SendCall } from './service.ts';
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
        return await service.open.send(call);
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
