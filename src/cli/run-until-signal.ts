import type { System } from '../compose.ts';

const stopSignals = ['SIGINT', 'SIGTERM'] as const;

/** A signal that follows this soon is an echo: npm passes Ctrl-C on although the terminal has told us already. */
const echoMs = 500;

const parentCheckMs = 500;
const lingerMs = 1000;

export type StopOptions = Readonly<{
  /**
   * Whether the end of the parent process asks for a stop too. npm runs a script in a shell, and a SIGTERM to npm
   * ends that shell without ever reaching us.
   */
  followsParent?: boolean;
}>;

/**
 * From now on the first Ctrl-C or SIGTERM asks for a stop, and a second one ends the process at once: whoever
 * asks twice means it. What was claimed then keeps its lease until the reaper ends it.
 */
export function listenForStop({ followsParent = false }: StopOptions = {}): AbortSignal {
  const asked = new AbortController();
  let askedAtMs = 0;
  const ask = (): void => {
    askedAtMs = performance.now();
    asked.abort();
  };
  const onSignal = (): void => {
    if (!asked.signal.aborted) ask();
    else if (performance.now() - askedAtMs > echoMs) process.exit(130);
  };
  for (const signal of stopSignals) process.on(signal, onSignal);
  if (followsParent) onParentEnd(asked.signal, ask);
  return asked.signal;
}

/** Whoever loses its parent gets another one. The check by itself keeps no process running. */
function onParentEnd(stopAsked: AbortSignal, ask: () => void): void {
  const parent = process.ppid;
  const check = setInterval(() => {
    if (stopAsked.aborted) clearInterval(check);
    else if (process.ppid !== parent) ask();
  }, parentCheckMs).unref();
}

export type RunOptions = Readonly<{
  /** Taken before the start, it also holds a Ctrl-C that comes while the system starts. */
  stopAsked?: AbortSignal;
  beforeStop?: () => Promise<void>;
}>;

/** Waits until somebody asks for a stop, then drains and returns. */
export async function runUntilSignal(system: System, options: RunOptions = {}): Promise<void> {
  const { stopAsked = listenForStop(), beforeStop = async () => {} } = options;
  if (!stopAsked.aborted)
    await new Promise<void>((resolve) => {
      stopAsked.addEventListener('abort', () => resolve(), { once: true });
    });
  await beforeStop();
  await system.stop();
  // Whatever still holds the process after this, it is not worth waiting for.
  setTimeout(() => process.exit(0), lingerMs).unref();
}
