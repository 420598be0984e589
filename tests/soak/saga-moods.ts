import type { ParticipantAct, ParticipantRule, ParticipantScript } from '../support/participant/script.ts';
import type { Chance } from './chance.ts';

/** How the participant behaves for a while. It never says no to what it does, and never lies about what it has done. */
export type SagaMood = Readonly<{ name: string; script: ParticipantScript }>;

/** How long a participant is waited for. */
export const stepTimeoutMs = 900;

/** Everything bad that it can do with one call, and how often. */
const mischief: readonly (readonly [chance: number, does: ParticipantAct])[] = [
  [0.02, { act: 'late', ms: stepTimeoutMs + 300 }],
  [0.01, { act: 'late', ms: 10 * stepTimeoutMs }],
  [0.01, { act: 'hang', effect: true }],
  [0.01, { act: 'hang', effect: false }],
  [0.02, { act: 'reset', effect: true }],
  [0.01, { act: 'reset', effect: false }],
  [0.02, { act: 'status', status: 500, effect: true }],
  [0.01, { act: 'status', status: 503, effect: false, retryAfterS: 1 }],
  [0.01, { act: 'status', status: 429, effect: false }],
  [0.01, { act: 'garbage', as: 'text', effect: true }],
  [0.005, { act: 'garbage', as: 'huge', effect: true }],
  [0.01, { act: 'garbage', as: 'bytes', effect: true }],
];

const calmRules: readonly ParticipantRule[] = [
  { op: 'action', arrival: 1, chance: 0.03, does: { act: 'refuse' } },
  { op: 'action', arrival: 1, chance: 0.02, does: { act: 'refuse', status: 422 } },
  { op: 'action', chance: 0.03, does: { act: 'work', ms: 400 } },
  { op: 'action', chance: 0.01, does: { act: 'work', ms: 4000 } },
];

const usual: ParticipantScript = {
  rules: [...mischief.map(([chance, does]) => ({ chance, does })), ...calmRules],
  otherwise: { act: 'ok', delayMs: 10 },
  again: { chance: 0.05, afterMs: 2500 },
};

export const kindly: SagaMood = { name: 'kindly', script: { otherwise: { act: 'ok', delayMs: 5 } } };

/** Mostly as usual, and now and then all of it is bad for a while. */
export function drawSagaMood(chance: Chance): SagaMood {
  const seed = chance.between(1, 1_000_000);
  const drawn = chance.next();
  if (drawn < 0.7) return { name: 'as usual', script: { ...usual, seed } };
  if (drawn < 0.75) return { name: 'silent', script: { otherwise: { act: 'hang', effect: true }, seed } };
  if (drawn < 0.8)
    return { name: 'broken', script: { otherwise: { act: 'status', status: 500, effect: false }, seed } };
  if (drawn < 0.9)
    return { name: 'slow', script: { ...usual, otherwise: { act: 'ok', delayMs: 500 }, seed } };
  return { name: 'busy', script: { ...usual, otherwise: { act: 'work', ms: 300 }, seed } };
}
