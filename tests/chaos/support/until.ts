import { sleep } from '../../../src/kernel/clock.ts';

const pollMs = 20;

/** Asks until the answer is something; fails with what was waited for, and with what `explain` adds. */
export async function until<T>(
  what: string,
  probe: () => Promise<T | false | null | undefined>,
  { withinMs = 120_000, explain = () => '' }: Readonly<{ withinMs?: number; explain?: () => string }> = {},
): Promise<T> {
  const giveUpAtMs = performance.now() + withinMs;
  for (;;) {
    const answer = await probe();
    if (answer !== false && answer !== null && answer !== undefined) return answer;
    if (performance.now() >= giveUpAtMs)
      throw new Error(`waited ${withinMs} ms in vain until ${what}\n${explain()}`);
    await sleep(pollMs);
  }
}
