import type { Op } from './saga-state.ts';

/** Names one attempt to its participant. All attempts at an action, or at an undo, have the same idempotency key. */
export function attemptHeaders(
  of: Readonly<{ sagaId: string; stepName: string; op: Op; attempt: number }>,
): Readonly<Record<string, string>> {
  const op = of.op === 'EXECUTE' ? 'action' : 'compensate';
  return {
    'saga-id': of.sagaId,
    'saga-step': of.stepName,
    'saga-op': op,
    'saga-attempt': String(of.attempt),
    'idempotency-key': `${of.sagaId}:${of.stepName}:${op}`,
  };
}
