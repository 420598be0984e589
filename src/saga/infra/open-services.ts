import { messageOf } from '../../kernel/errors.ts';
import type { ServiceSettings } from '../domain/service-settings.ts';
import type { SendCall } from '../usecase/ports.ts';
import { openGrpcService } from './grpc-service.ts';
import { openHttpService } from './http-service.ts';

/** A participant, ready to be called. */
export type OpenService = Readonly<{
  send: SendCall;
  /** What can be called; null where nobody can tell, undefined methods included. Rejects where it is not known yet. */
  methods(): Promise<ReadonlySet<string> | null>;
  close(): Promise<void>;
}>;

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
        // A fault of ours: nobody knows what has left.
        return { ...failure, detail: `the call failed: ${messageOf(error)}`, isUnsent: false };
      }
    },
    async close() {
      await Promise.all([...services.values()].map(({ open }) => open.close()));
    },
  };
}
