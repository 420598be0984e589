import type { PartnerAct, ScriptRule, ScriptRules } from '../support/partner.ts';
import type { Chance } from './chance.ts';

/** How a partner behaves for a while. Whatever it answers, it tells the truth about what has certainly not happened. */
export type Mood = Readonly<{ name: string; script: ScriptRules }>;

/** How long a partner is waited for. */
export const timeoutMs = 900;

const quick: PartnerAct = { act: 'ok', delayMs: 15 };

/** Everything bad that a partner can do to one request, and how often. */
const mischief: readonly (readonly [chance: number, does: PartnerAct])[] = [
  [0.015, { act: 'ok', delayMs: timeoutMs + 200 }],
  [0.01, { act: 'hang', effect: true }],
  [0.01, { act: 'hang', effect: false }],
  [0.02, { act: 'status', status: 500, effect: true }],
  [0.01, { act: 'status', status: 500, effect: false }],
  [0.01, { act: 'status', status: 502, effect: true }],
  [0.01, { act: 'status', status: 504, effect: true }],
  [0.01, { act: 'status', status: 408, effect: true }],
  [0.01, { act: 'reset', when: 'before_effect' }],
  [0.01, { act: 'reset', when: 'before_answer' }],
  [0.01, { act: 'reset', when: 'mid_answer' }],
  [0.01, { act: 'reset', when: 'mid_answer', by: 'fin' }],
  [0.01, { act: 'garbage', effect: true }],
  [0.005, { act: 'huge_body', effect: true, bytes: 200_000 }],
  [0.005, { act: 'endless_body', effect: true }],
  [0.01, { act: 'wrong_key' }],
  [0.02, { act: 'empty' }],
  [0.01, { act: 'conflict', kind: 'processed' }],
  [0.01, { act: 'conflict', kind: 'running' }],
  [0.01, { act: 'later', status: 503 }],
  [0.003, { act: 'redirect' }],
  [0.003, { act: 'status', status: 422, effect: false }],
  [0.002, { act: 'status', status: 401, effect: false }],
];

const always = (does: PartnerAct, chance = 1): ScriptRule => ({ chance, does });

const limited: readonly ScriptRule[] = [
  always({ act: 'later', status: 429, afterS: 1 }, 0.1),
  always({ act: 'later', status: 429, afterS: 1, form: 'date' }, 0.1),
];

export const kind: Mood = { name: 'kind', script: { otherwise: quick } };

export function drawMood(chance: Chance): Mood {
  const seed = chance.between(1, 1_000_000);
  const repeat = chance.pick(['same', 'same', 'processed'] as const);
  const status = chance.pick(['ledger', 'ledger', 'ledger', 'error', 'hang'] as const);
  const base = { seed, repeat, status, otherwise: quick };
  const bad = mischief.map(([probability, does]) => always(does, probability));
  const drawn = chance.next();
  if (drawn < 0.6) return { name: 'mischievous', script: { ...base, rules: bad } };
  if (drawn < 0.75)
    return {
      name: 'storm of errors',
      script: { ...base, rules: [always({ act: 'status', status: 500, effect: chance.is(0.5) }, 0.9)] },
    };
  if (drawn < 0.82) return { name: 'too many requests', script: { ...base, rules: limited } };
  if (drawn < 0.9)
    return {
      name: 'hanging up',
      script: { ...base, rules: [always({ act: 'reset', when: 'before_answer' }, 0.8)] },
    };
  return { name: 'kind', script: base };
}
