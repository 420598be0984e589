import type { Call } from './decide.ts';
import type { Step, Workflow } from './workflow.ts';

/** What of a running saga a participant is told. */
export type CalledSaga = Readonly<{ id: string; epoch: bigint; startedAt: number }>;

/**
 * What goes with a call, as HTTP headers or gRPC metadata. The key is the same for every attempt of an action, and
 * another for its undo. A step's name is percent-encoded, because a header cannot hold every name.
 */
export function callHeaders(
  workflow: Workflow,
  saga: CalledSaga,
  { step, op, attempt, latestBegin }: Call,
): Readonly<Record<string, string>> {
  const name = encodeURIComponent((workflow.steps[step] as Step).name);
  const does = op === 'EXECUTE' ? 'action' : 'compensate';
  return {
    'saga-id': saga.id,
    'saga-step': name,
    'saga-op': does,
    'saga-attempt': String(attempt),
    'saga-epoch': String(saga.epoch),
    'idempotency-key': `${saga.id}/${name}/${does}`,
    'saga-started-at': new Date(saga.startedAt).toISOString(),
    'saga-deadline': new Date(latestBegin).toISOString(),
  };
}
