import * as circuits from '../../kernel/targets/circuit.ts';
import type { Answer } from './judge-answer.ts';

/**
 * The circuit of a service (see kernel/targets/circuit.ts). Each process counts the failures in a row of its own calls; when
 * they show an outage it opens the circuit for all. Any answer that does not say that the service is down closes it.
 */
const outage: readonly circuits.OutageRule[] = [
  { failures: 5, items: 3 },
  // Of fewer sagas: one that always fails is no outage as long as others succeed.
  { failures: 5, items: 1, overMs: 60_000 },
];

export function isOutage(streak: circuits.Streak<string>, nowMs: number): boolean {
  return circuits.isOutage(streak, outage, nowMs);
}

/** `nothing`: the call was not sent, for a reason of our own. */
export type Contact = 'down' | 'up' | 'nothing';

export function contactOf(answer: Answer): Contact {
  if (answer.class === 'done' || answer.class === 'working') return 'up';
  if (answer.isDown === true) return 'down';
  return answer.isUnsent ? 'nothing' : 'up';
}
