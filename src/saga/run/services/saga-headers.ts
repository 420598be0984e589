import { traceparentOf } from '../../../platform/telemetry/outgoing-traceparent.ts';
import type { OutgoingCall } from './service.ts';

/** Sent to every participant, as HTTP headers or gRPC metadata. All attempts at an action, or at an undo, have the same idempotency key. */
export function sagaHeaders({ saga, call, stepName, epoch }: OutgoingCall): Readonly<Record<string, string>> {
  const op = call.op === 'EXECUTE' ? 'action' : 'compensate';
  const traceparent = traceparentOf(saga.trace);
  return {
    'saga-id': saga.id,
    'saga-step': stepName,
    'saga-op': op,
    'saga-attempt': String(call.attempt),
    'saga-epoch': String(epoch),
    'idempotency-key': `${saga.id}:${stepName}:${op}`,
    'saga-started-at': new Date(saga.startedAt).toISOString(),
    'saga-deadline': new Date(call.latestBegin).toISOString(),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}
