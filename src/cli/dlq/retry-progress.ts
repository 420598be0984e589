import { setTimeout as sleep } from 'node:timers/promises';
import type { Terminal } from '../terminal.ts';

export type Progress = Readonly<{ done: number; total: number; elapsedMs: number }>;

const terminalEveryMs = 1000;
const logEveryMs = 10_000;

export function progressLine({ done, total, elapsedMs }: Progress): string {
  const perSecond = elapsedMs > 0 ? (done * 1000) / elapsedMs : 0;
  const left = perSecond > 0 ? `, ${formatSeconds((total - done) / perSecond)} left` : '';
  const format = (count: number): string => Math.round(count).toLocaleString('en');
  return `${format(done)} of ${format(total)} messages, ${format(perSecond)} per second${left}`;
}

function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.ceil(whole / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/**
 * Shows the progress of the work on standard error: on a terminal as one line that is rewritten, else as a new line
 * every 10 s. Nothing is shown while `countLeft` fails.
 */
export async function withProgress<T>(
  { stderr }: Terminal,
  how: Readonly<{ total: number; countLeft: () => Promise<number>; everyMs?: number }>,
  work: Promise<T>,
): Promise<T> {
  const isTerminal = stderr.isTTY === true;
  const everyMs = how.everyMs ?? (isTerminal ? terminalEveryMs : logEveryMs);
  const ended = new AbortController();
  const show = async (): Promise<void> => {
    const startMs = performance.now();
    while (await hasPassed(everyMs, ended.signal)) {
      const left = await how.countLeft().catch(() => null);
      if (left === null || ended.signal.aborted) continue;
      const done = Math.max(0, how.total - left);
      const line = progressLine({ done, total: how.total, elapsedMs: performance.now() - startMs });
      stderr.write(isTerminal ? `\r\u001b[K${line}` : `${line}\n`);
    }
    if (isTerminal) stderr.write('\r\u001b[K');
  };
  const shown = show();
  try {
    return await work;
  } finally {
    ended.abort();
    await shown;
  }
}

/** False if aborted. */
async function hasPassed(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}
