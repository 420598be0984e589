import type { System } from '../compose.ts';

export type RunOptions = Readonly<{
  /** Taken before the start, it also holds a Ctrl-C that comes while the system starts. */
  stopAsked?: AbortSignal;
  beforeStop?: () => Promise<void>;
}>;

const stopSignals = ['SIGINT', 'SIGTERM'] as const;

/** A signal that follows this soon is an echo: npm passes Ctrl-C on although the terminal has told us already. */
const echoMs = 500;

/**
 * From now on the first Ctrl-C or SIGTERM asks for a stop, and a second one ends the process at once: whoever
 * asks twice means it. What was claimed then keeps its lease until the reaper ends it.
 */
export function listenForStop(): AbortSignal {
  const asked = new AbortController();
  let askedAtMs = 0;
  const onSignal = (): void => {
    if (!asked.signal.aborted) {
      askedAtMs = performance.now();
      asked.abort();
    } else if (performance.now() - askedAtMs > echoMs) process.exit(130);
  };
  for (const signal of stopSignals) process.on(signal, onSignal);
  return asked.signal;
}

/** Waits until somebody asks for a stop, then drains and returns. */
export async function runUntilSignal(system: System, options: RunOptions = {}): Promise<void> {
  const { stopAsked = listenForStop(), beforeStop = async () => {} } = options;
  await aborted(stopAsked);
  await beforeStop();
  await system.stop();
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
