import { setTimeout as delay } from 'node:timers/promises';

/**
 * Repeats `attempt` until it no longer throws, and returns what it returned; gives up with its last error. For
 * what another process or a background loop does in its own time.
 */
export async function eventually<T>(
  attempt: () => T | Promise<T>,
  { withinMs = 60_000, everyMs = 40 }: Readonly<{ withinMs?: number; everyMs?: number }> = {},
): Promise<T> {
  const deadlineMs = performance.now() + withinMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() >= deadlineMs) throw error;
      await delay(everyMs);
    }
  }
}
