import { traceparentOf } from '../../../platform/telemetry/outgoing-traceparent.ts';
import { attemptHeaders } from '../../domain/attempt-headers.ts';
import type { OutgoingCall } from './service.ts';

/** Sent to every participant, as HTTP headers or gRPC metadata. */
export function sagaHeaders({ saga, call, stepName, epoch }: OutgoingCall): Readonly<Record<string, string>> {
  const traceparent = traceparentOf(saga.trace);
  return {
    ...attemptHeaders({ sagaId: saga.id, stepName, op: call.op, attempt: call.attempt }),
    'saga-epoch': String(epoch),
    'saga-started-at': new Date(saga.startedAt).toISOString(),
    'saga-deadline': new Date(call.latestBegin).toISOString(),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}
