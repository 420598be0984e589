import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../kernel/errors.ts';
import { escapeText } from '../../kernel/escape-text.ts';
import { ApiError } from '../../client-http/index.ts';
import { exitCodes, SilentFailure } from '../exit-code.ts';
import { explainError } from '../explain-error.ts';
import { displayWidth } from '../output/display-width.ts';
import { listenForStop } from '../run-until-signal.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';
import type { Input, Value } from './define-command.ts';

/** As `watch` of Linux. */
const defaultSeconds = 2;

export const watchInput: Input = {
  flags: '--watch [seconds]',
  text: `show it again every few seconds (default: ${defaultSeconds}) until Ctrl-C`,
  field: null,
  parse: wholeNumber(1, 3600),
};

/** Prints the result once. */
type Show = (terminal: Terminal) => Promise<void>;

/**
 * Shows a result again and again until Ctrl-C, which is a success. A terminal is redrawn in place; elsewhere snapshots
 * are appended, each below a line with its time, and with `--json` as one document per line. Once there was a result,
 * a server that goes away is reported and waited for.
 */
export async function watch(
  terminal: Terminal,
  { seconds, asJson }: Readonly<{ seconds: Value; asJson: boolean }>,
  show: Show,
): Promise<void> {
  const stopAsked = terminal.interrupted ?? listenForStop();
  const everyMs = (seconds === true ? defaultSeconds : Number(seconds)) * 1000;
  const screen = createScreen(terminal, { everyMs, asJson });
  let hasShown = false;
  while (!stopAsked.aborted) {
    try {
      const result = await unlessAborted(stopAsked, screen.render(show));
      if (result === null) break;
      screen.update(result);
      hasShown = true;
    } catch (error) {
      if (!hasShown || !isPassing(error)) throw error;
      screen.unavailable(error);
    }
    await sleep(everyMs, undefined, { signal: stopAsked }).catch(() => {});
  }
  screen.end();
  // A request may still be open; nothing is lost with it.
  if (terminal.interrupted === undefined) setTimeout(() => process.exit(exitCodes.ok), 0).unref();
}

/** The result of the work, or null as soon as the signal aborts. Leaves nothing on the signal: it may be watched for days. */
async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T | null> {
  const { promise: stopped, resolve } = Promise.withResolvers<null>();
  const onAbort = (): void => resolve(null);
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([work, stopped]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** The server is away, starts, stops or has too much to do. */
function isPassing(error: unknown): error is ApiError {
  return (
    error instanceof ApiError && (error.status === undefined || error.status >= 500 || error.status === 429)
  );
}

type Screen = Readonly<{
  render(show: Show): Promise<string>;
  update(result: string): void;
  unavailable(error: ApiError): void;
  end(): void;
}>;

type ScreenOptions = Readonly<{ everyMs: number; asJson: boolean }>;

function createScreen(terminal: Terminal, options: ScreenOptions): Screen {
  const { isTTY } = terminal.stdout;
  const isRedrawn = isTTY === true && terminal.env['TERM'] !== 'dumb' && !options.asJson;
  return isRedrawn ? createRedrawnScreen(terminal, options) : createLog(terminal, options);
}

function createRedrawnScreen({ env, stdin, stdout }: Terminal, { everyMs }: ScreenOptions): Screen {
  let last = '';
  let away: Readonly<{ since: string; at: number }> | null = null;
  const time = (): string => new Date().toTimeString().slice(0, 8);
  const draw = (note: string): void => {
    const header = `every ${everyMs / 1000} s, last at ${time()}, Ctrl-C to stop${note}`;
    const lines = fitRows([...header.split('\n'), '', ...last.trimEnd().split('\n')], stdout);
    stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join('\r\n')}\u001b[J`);
  };
  stdout.write('\u001b[H\u001b[2J');
  return {
    async render(show) {
      let text = '';
      const write = (data: string | Uint8Array): void => void (text += data.toString());
      // Notes belong to what is shown.
      const output = { ...sizeOf(stdout), isTTY: true, write };
      await neverFailing(show({ env, stdin, stdout: output, stderr: output }));
      return text;
    },
    update(result) {
      last = result;
      away = null;
      draw('');
    },
    unavailable(error) {
      away ??= { since: time(), at: performance.now() };
      draw(`\nunavailable since ${away.since}, trying again: ${escapeText(messageOf(error))}`);
    },
    end: () => void stdout.write('\r\n'),
  };
}

function createLog({ env, stdin, stdout, stderr }: Terminal, { everyMs, asJson }: ScreenOptions): Screen {
  let count = 0;
  let awayAtMs: number | null = null;
  return {
    async render(show) {
      let text = '';
      const write = (data: string | Uint8Array): void => void (text += data.toString());
      await neverFailing(show({ env, stdin, stdout: { ...sizeOf(stdout), write }, stderr }));
      return text;
    },
    update(result) {
      if (awayAtMs !== null && !asJson) {
        const seconds = Math.round((performance.now() - awayAtMs) / 1000);
        stderr.write(`redrive: available again after ${seconds} s\n`);
      }
      awayAtMs = null;
      count += 1;
      const heading = `${count === 1 ? '' : '\n'}--- ${new Date().toISOString()}\n`;
      stdout.write(asJson ? result : `${heading}${result}`);
    },
    unavailable(error) {
      if (awayAtMs !== null) return;
      awayAtMs = performance.now();
      for (const line of explainError(error, asJson)) stderr.write(`${line}\n`);
      if (!asJson) stderr.write(`redrive: trying again every ${everyMs / 1000} s\n`);
    },
    end() {},
  };
}

/** A negative result is shown like any other. */
async function neverFailing(shown: Promise<void>): Promise<void> {
  try {
    await shown;
  } catch (error) {
    if (!(error instanceof SilentFailure)) throw error;
  }
}

/** The lines that the screen has room for; long ones take several rows. */
function fitRows(lines: readonly string[], { columns = 0, rows = 0 }: Terminal['stdout']): readonly string[] {
  if (rows < 3) return lines;
  const heightOf = (line: string): number =>
    columns > 0 ? Math.max(1, Math.ceil(displayWidth(line) / columns)) : 1;
  let used = 0;
  const fitting = lines.filter((line) => (used += heightOf(line)) <= rows - 1);
  const cut = lines.length - fitting.length;
  return cut === 0 ? lines : [...fitting, `… ${cut} more ${cut === 1 ? 'line' : 'lines'}`];
}

function sizeOf({ isTTY, columns, rows }: Terminal['stdout']): Partial<Terminal['stdout']> {
  return {
    ...(isTTY === undefined ? {} : { isTTY }),
    ...(columns === undefined ? {} : { columns }),
    ...(rows === undefined ? {} : { rows }),
  };
}
