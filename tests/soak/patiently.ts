import { sleep } from '../../src/kernel/clock.ts';
import { isOutage } from '../../src/platform/postgres/sqlstate.ts';

const againAfterMs = 100;
const giveUpAfterMs = 60_000;

/** Repeats what failed because the database was away. */
export async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const giveUpAtMs = performance.now() + giveUpAfterMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isOutage(error) || performance.now() >= giveUpAtMs) throw error;
      await sleep(againAfterMs);
    }
  }
}
