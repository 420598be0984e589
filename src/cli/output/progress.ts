import { setTimeout as sleep } from 'node:timers/promises';
import type { Terminal } from '../terminal.ts';

export type Progress = Readonly<{
  /** What is going on: `retrying`. */
  label: string;
  elapsedMs: number;
  /** How much is done, where that is known. */
  counted?:
    | Readonly<{
        done: number;
        total?: number | undefined;
        unit: string;
        /** Default: the average since the start. */
        perSecond?: number | null | undefined;
        /** Default: what is left, at that rate. */
        secondsLeft?: number | null | undefined;
      }>
    | undefined;
  /** Of the terminal, if it is known: then there is a bar, and the line is cut. */
  columns?: number | undefined;
}>;

export type ProgressOptions = Readonly<{
  label: string;
  unit?: string;
  total?: number | undefined;
  /** How much is done. Without it only the time is shown. The signal aborts when the work is over. */
  countDone?: (signal: AbortSignal) => number | Promise<number>;
  /** The rate as the server measures it, for work that began before this command. */
  perSecond?: () => number | null;
  /** The time that is left, as the server knows it. */
  secondsLeft?: () => number | null;
  /** With `--json` nothing is shown. */
  isQuiet: boolean;
  everyMs?: number;
}>;

/** Each report replaces the one before. */
const terminalEveryMs = 1000;
/** Off a terminal each report is a line of its own. */
const logEveryMs = 5000;

/** `retrying: 5,000 of 20,000 messages, 1,000 per second, 15 s left` */
export function progressLine({ label, elapsedMs, counted, columns = 0 }: Progress): string {
  const line = lineOf({ label, elapsedMs, counted });
  const { done = 0, total = 0 } = counted ?? {};
  const bar = total > 0 && columns >= columnsForBar ? `${barOf(done / total)} ` : '';
  // The last column stays free: a line that wraps could not be erased.
  return columns > 1 ? `${bar}${line}`.slice(0, columns - 1) : line;
}

const columnsForBar = 60;
const barWidth = 20;

/** `[#####---------------]  25 %` */
function barOf(share: number): string {
  const part = Math.min(1, Math.max(0, share));
  const filled = Math.floor(part * barWidth);
  const percent = String(Math.floor(part * 100)).padStart(3);
  return `[${'#'.repeat(filled)}${'-'.repeat(barWidth - filled)}] ${percent} %`;
}

function lineOf({ label, elapsedMs, counted }: Progress): string {
  if (counted === undefined) return `${label}: ${formatSeconds(elapsedMs / 1000)}`;
  const { done, total, unit, secondsLeft = null } = counted;
  const average = elapsedMs > 0 ? (done * 1000) / elapsedMs : 0;
  const perSecond = counted.perSecond ?? average;
  const of = total === undefined ? '' : ` of ${format(total)}`;
  const atThisRate = total !== undefined && perSecond > 0 ? (total - done) / perSecond : null;
  const seconds = secondsLeft ?? atThisRate;
  const left = seconds === null ? '' : `, ${formatSeconds(seconds)} left`;
  return `${label}: ${format(done)}${of} ${unit}, ${format(perSecond)} per second${left}`;
}

const format = (count: number): string => Math.round(count).toLocaleString('en');

export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.ceil(whole / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/**
 * Shows the progress of work that takes longer than a second, on standard error: on a terminal as one line that is
 * rewritten and erased at the end, else as a new line every 5 s. Nothing is shown while counting fails.
 */
export async function withProgress<T>(
  { stderr }: Terminal,
  options: ProgressOptions,
  work: () => Promise<T>,
): Promise<T> {
  if (options.isQuiet) return work();
  const isTerminal = stderr.isTTY === true;
  const everyMs = options.everyMs ?? (isTerminal ? terminalEveryMs : logEveryMs);
  const ended = new AbortController();
  let isShown = false;
  const show = async (): Promise<void> => {
    const startMs = performance.now();
    while (await hasPassed(everyMs, ended.signal)) {
      const counted = await count(options, ended.signal).catch(() => null);
      if (counted === null || ended.signal.aborted) continue;
      const line = progressLine({
        label: options.label,
        elapsedMs: performance.now() - startMs,
        counted,
        columns: isTerminal ? stderr.columns : undefined,
      });
      stderr.write(isTerminal ? `\r\u001b[K${line}` : `${line}\n`);
      isShown = true;
    }
  };
  void show();
  try {
    return await work();
  } finally {
    // A count under way is not awaited: it may take as long as a server takes that does not answer.
    ended.abort();
    if (isTerminal && isShown) stderr.write('\r\u001b[K');
  }
}

async function count(
  { unit = '', total, countDone, perSecond, secondsLeft }: ProgressOptions,
  signal: AbortSignal,
): Promise<Progress['counted']> {
  if (countDone === undefined) return undefined;
  return {
    done: Math.max(0, await countDone(signal)),
    total,
    unit,
    perSecond: perSecond?.(),
    secondsLeft: secondsLeft?.(),
  };
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
