import type { System } from '../compose.ts';

/**
 * Waits for Ctrl-C or SIGTERM, then drains and returns. A second signal ends the process at once: whoever
 * asks twice means it. What was claimed then keeps its lease until the reaper ends it.
 */
export async function runUntilSignal(
  system: System,
  beforeStop: () => Promise<void> = async () => {},
): Promise<void> {
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  await beforeStop();
  await system.stop();
}
