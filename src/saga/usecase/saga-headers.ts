import type { OutgoingCall } from './ports.ts';

/**
 * What every participant is told, as HTTP headers and as gRPC metadata alike. The idempotency key stays the same for
 * all attempts of one action and of one undo.
 */
export function sagaHeaders({ saga, call, stepName, epoch }: OutgoingCall): Readonly<Record<string, string>> {
  const op = call.op === 'EXECUTE' ? 'action' : 'compensate';
  return {
    'saga-id': saga.id,
    'saga-step': stepName,
    'saga-op': op,
    'saga-attempt': String(call.attempt),
    'saga-epoch': String(epoch),
    'idempotency-key': `${saga.id}:${stepName}:${op}`,
    'saga-started-at': new Date(saga.startedAt).toISOString(),
    'saga-deadline': new Date(call.latestBegin).toISOString(),
    ...(saga.trace === null ? {} : { traceparent: saga.trace }),
  };
}
