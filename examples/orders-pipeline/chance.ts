import { hash } from 'node:crypto';

/**
 * Chance that can be repeated: the same question always gets the same number, from 0 up to but not including 1.
 * So a run with the same seed has the same orders and the same failures, whatever happens at the same time.
 */
export type Chance = (question: string) => number;

export function chanceFrom(seed: string): Chance {
  return (question) => hash('sha256', `${seed}: ${question}`, 'buffer').readUInt32BE() / 2 ** 32;
}

export function pick<T>(items: readonly [T, ...T[]], chance: number): T {
  return items[Math.floor(chance * items.length)] ?? items[0];
}
