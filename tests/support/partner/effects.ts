import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** What an order has brought about at the partner: how often, by which body, and what was answered the first time. */
export type Effect = Readonly<{ key: string; count: number; body: string; answer: string }>;

/** The partner's own book of what has really happened. It may outlive the partner: hand it to the next one. */
export type EffectLedger = Readonly<{
  /** Makes the effect of a key happen once more. */
  add(key: string, body: string): Effect;
  get(key: string): Effect | undefined;
  entries(): readonly Effect[];
  keys(): number;
  /** Over all keys. */
  effects(): number;
  /** Keys whose effect happened more than once. */
  doubled(): readonly string[];
}>;

/** A ledger in a file: every effect is written down before anybody hears of it, so it outlives a killed process. */
export function openEffectLedger(path: string): EffectLedger {
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
  const known = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Effect);
  return createEffectLedger(known, (effect) => appendFileSync(path, `${JSON.stringify(effect)}\n`));
}

export function createEffectLedger(
  known: readonly Effect[] = [],
  note: (effect: Effect) => void = () => {},
): EffectLedger {
  const byKey = new Map(known.map((effect) => [effect.key, effect]));
  return {
    add(key, body) {
      const before = byKey.get(key);
      const effect = { key, count: (before?.count ?? 0) + 1, body, answer: before?.answer ?? answerOf(key) };
      note(effect);
      byKey.set(key, effect);
      return effect;
    },
    get: (key) => byKey.get(key),
    entries: () => [...byKey.values()],
    keys: () => byKey.size,
    effects: () => [...byKey.values()].reduce((sum, { count }) => sum + count, 0),
    doubled: () => [...byKey.values()].filter(({ count }) => count > 1).map(({ key }) => key),
  };
}

function answerOf(key: string): string {
  return JSON.stringify({
    broker_order_id: `brk-${randomUUID()}`,
    accepted_at: new Date().toISOString(),
    status: 'accepted',
    fills: [],
    idempotency_key: key,
  });
}
