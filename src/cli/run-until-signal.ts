import type { System } from '../compose.ts';
import { AppError } from '../kernel/errors.ts';

const stopSignals = ['SIGINT', 'SIGTERM'] as const;

/** A second signal within this time is an echo: npm forwards a Ctrl-C that the terminal has already sent us. */
const echoMs = 500;

/** How long we outlive a parent that was killed. */
const parentCheckMs = 500;
/** For the last lines of the log to be written. */
const lingerMs = 1000;

export type StopOptions = Readonly<{
  /**
   * Also stop when the parent process ends. npm runs a script in a shell, and a SIGTERM to npm ends that shell
   * without reaching us.
   */
  followsParent?: boolean;
}>;

/**
 * The first Ctrl-C or SIGTERM requests a stop, a second one ends the process immediately. Claimed work then keeps
 * its lease until the reaper releases it.
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

/** A process whose parent ends gets another one. The check does not keep the process running. */
function onParentEnd(stopAsked: AbortSignal, ask: () => void): void {
  const parent = process.ppid;
  const check = setInterval(() => {
    if (stopAsked.aborted) clearInterval(check);
    else if (process.ppid !== parent) ask();
  }, parentCheckMs).unref();
}

export type RunOptions = Readonly<{
  /** Created before the start, so that a Ctrl-C during the start counts. */
  stopAsked?: AbortSignal;
  beforeStop?: () => Promise<void>;
}>;

/** Waits for a stop request, then drains and returns. Throws if the embedded database ends before. */
export async function runUntilSignal(system: System, options: RunOptions = {}): Promise<void> {
  const { stopAsked = listenForStop(), beforeStop = async () => {} } = options;
  const endOfDatabase = system.databaseEnded?.then(() => 'database' as const) ?? new Promise<never>(() => {});
  const end = stopAsked.aborted ? 'stop' : await Promise.race([once(stopAsked), endOfDatabase]);
  await beforeStop();
  await system.stop();
  // Do not wait for handles that are still open.
  setTimeout(() => process.exit(), lingerMs).unref();
  if (end === 'database') throw databaseEnded();
}

function once(stopAsked: AbortSignal): Promise<'stop'> {
  return new Promise((resolve) => {
    stopAsked.addEventListener('abort', () => resolve('stop'), { once: true });
  });
}

/** Only a new start recovers the data folder, so whoever supervises this process has to know. */
function databaseEnded(): AppError {
  return new AppError(
    'SYS_EMBEDDED_ENDED',
    'unavailable',
    'the embedded PostgreSQL ended while it was in use, so this process has stopped: start it again; committed data is recovered',
  );
}
