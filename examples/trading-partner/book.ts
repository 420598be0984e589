import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { codeOf } from '../../src/kernel/errors.ts';

/** What the partner has really done for one key. */
export type Effect = Readonly<{
  brokerOrderId: string;
  idempotencyKey: string;
  /** In words: `BUY 1000 USDJPY`. */
  order: string;
  /** Of the order as it came: the same key with anything else is a mistake of the sender. */
  digest: string;
  /** What the sender was told at first. */
  firstAnswer: 'accepted' | 'error' | 'nothing';
  /** How often it was asked for; since a restart. */
  timesAsked: number;
  atMs: number;
}>;

/**
 * The partner's own book, and the reason why it may be sent an order twice: one key has one effect. An effect is in
 * the file before anybody is told of it, so that a partner that was stopped in between still knows.
 */
export type Book = Readonly<{
  /** The effect that a key has had; it counts as asked for once more. */
  ask(idempotencyKey: string): Effect | undefined;
  find(idempotencyKey: string): Effect | undefined;
  /** Does it: writes it down, under a number of its own. */
  enter(order: Omit<Effect, 'brokerOrderId' | 'timesAsked' | 'atMs'>): Effect;
  /** From the oldest to the newest. */
  effects(): readonly Effect[];
}>;

export type BookOptions = Readonly<{
  /** Without it, the book is forgotten with the process. It is made with the first effect. */
  file?: string | undefined;
  /** How long a key is remembered. */
  keepMs: number;
  nowMs?: () => number;
}>;

/** The file is written anew when more than this many of its lines, and more than half, are of forgotten effects. */
const forgottenLines = 1000;

export function openBook({ file, keepMs, nowMs = Date.now }: BookOptions): Book {
  const effects = new Map<string, Effect>();
  for (const effect of readEffects(file)) effects.set(effect.idempotencyKey, effect);
  let lines = effects.size;
  let lastNumber = Math.max(0, ...[...effects.values()].map(numberOf));

  /** The oldest come first, because they were entered first. */
  const forgetOld = (): void => {
    for (const [key, { atMs }] of effects) {
      if (atMs > nowMs() - keepMs) return;
      effects.delete(key);
    }
  };
  const write = (effect: Effect): void => {
    if (file === undefined) return;
    appendFileSync(file, lineOf(effect));
    lines += 1;
  };
  const writeAnew = (): void => {
    if (file === undefined || lines <= forgottenLines + 2 * effects.size) return;
    writeFileSync(`${file}.new`, [...effects.values()].map(lineOf).join(''));
    renameSync(`${file}.new`, file);
    lines = effects.size;
  };

  return {
    ask(idempotencyKey) {
      const effect = effects.get(idempotencyKey);
      if (effect !== undefined) effects.set(idempotencyKey, { ...effect, timesAsked: effect.timesAsked + 1 });
      return effect;
    },
    find: (idempotencyKey) => effects.get(idempotencyKey),
    enter(order) {
      lastNumber += 1;
      const brokerOrderId = `brk-${String(lastNumber).padStart(6, '0')}`;
      const effect = { brokerOrderId, ...order, timesAsked: 1, atMs: nowMs() };
      write(effect);
      effects.set(effect.idempotencyKey, effect);
      forgetOld();
      writeAnew();
      return effect;
    },
    effects: () => [...effects.values()],
  };
}

function numberOf({ brokerOrderId }: Effect): number {
  return Number(brokerOrderId.slice('brk-'.length));
}

function lineOf(effect: Effect): string {
  return `${JSON.stringify(effect)}\n`;
}

function readEffects(file: string | undefined): readonly Effect[] {
  if (file === undefined) return [];
  try {
    return readFileSync(file, 'utf8').split('\n').flatMap(effectIn);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** A line that a crash has cut short is of an effect that nobody was told of. */
function effectIn(line: string): readonly Effect[] {
  try {
    return [JSON.parse(line) as Effect];
  } catch {
    return [];
  }
}
