import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Terminal } from '../terminal.ts';
import { progressLine, withProgress } from './progress.ts';

test('a line shows the count, the rate and the remaining time', () => {
  const lines = [
    { done: 0, total: 20_000, elapsedMs: 1000 },
    { done: 5000, total: 20_000, elapsedMs: 5000 },
    { done: 1000, total: 1_000_000, elapsedMs: 1000 },
    { done: 100, total: 1_000_000, elapsedMs: 1000 },
    { done: 100, elapsedMs: 1000 },
  ].map(({ elapsedMs, ...counted }) =>
    progressLine({ label: 'retrying', elapsedMs, counted: { ...counted, unit: 'messages' } }),
  );
  assert.deepEqual(lines, [
    'retrying: 0 of 20,000 messages, 0 per second',
    'retrying: 5,000 of 20,000 messages, 1,000 per second, 15 s left',
    'retrying: 1,000 of 1,000,000 messages, 1,000 per second, 17 min left',
    'retrying: 100 of 1,000,000 messages, 100 per second, 2 h 47 min left',
    'retrying: 100 messages, 100 per second',
  ]);
  assert.equal(progressLine({ label: 'archiving', elapsedMs: 11_200 }), 'archiving: 12 s');
});

test('a wide terminal shows a bar, and no line is longer than the terminal', () => {
  const line = (columns: number): string =>
    progressLine({
      label: 'redriving',
      elapsedMs: 1000,
      counted: { done: 5000, total: 20_000, unit: 'messages', perSecond: 100 },
      columns,
    });
  assert.equal(
    line(100),
    '[#####---------------]  25 % redriving: 5,000 of 20,000 messages, 100 per second, 3 min left',
  );
  assert.equal(line(70).length, 69);
  assert.equal(line(40), 'redriving: 5,000 of 20,000 messages, 10');
  assert.equal(line(0), 'redriving: 5,000 of 20,000 messages, 100 per second, 3 min left');
});

/** Shows progress until two lines have been written. */
async function twoLines(isTTY: boolean): Promise<string> {
  let written = '';
  const enough = Promise.withResolvers<string>();
  const write = (text: string | Uint8Array): void => {
    written += String(text);
    if (written.match(/messages/g)?.length === 2) enough.resolve('done');
  };
  let done = 0;
  const countDone = async (): Promise<number> => {
    done += 3;
    if (done === 6) throw new Error('the server did not answer');
    return done;
  };
  const options = { label: 'retrying', unit: 'messages', total: 10, countDone, isQuiet: false, everyMs: 1 };
  const shown = withProgress(terminalWith({ write, isTTY }), options, () => enough.promise);
  assert.equal(await shown, 'done');
  return written;
}

function terminalWith(stderr: Terminal['stderr']): Terminal {
  return { env: {}, stdin: Readable.from([]), stdout: { write: () => {} }, stderr };
}

test('on a terminal one line is rewritten and erased at the end, elsewhere every update is a new line', async () => {
  const onTerminal = await twoLines(true);
  assert.ok(
    onTerminal.startsWith('\r\u001b[Kretrying: 3 of 10 messages') && onTerminal.endsWith('\r\u001b[K'),
  );
  assert.ok(!onTerminal.includes('\n'));
  const inLog = await twoLines(false);
  assert.match(inLog, /^retrying: 3 of 10 messages.*\nretrying: 9 of 10 messages.*\n$/);
});

test('work that is over before a line is due, or for a program, shows nothing', async () => {
  const written: unknown[] = [];
  const terminal = terminalWith({ isTTY: true, write: (text) => written.push(text) });
  await withProgress(terminal, { label: 'x', isQuiet: false }, async () => {});
  let counts = 0;
  const countDone = (): number => (counts += 1);
  const slow = () => new Promise<void>((resolve) => void setTimeout(resolve, 20));
  await withProgress(terminal, { label: 'x', countDone, isQuiet: true, everyMs: 1 }, slow);
  assert.deepEqual([written, counts], [[], 0]);
});

test('a failure of the work is rethrown', async () => {
  const terminal = terminalWith({ write() {} });
  const failing = withProgress(terminal, { label: 'x', isQuiet: false }, async () => {
    throw new Error('refused');
  });
  await assert.rejects(failing, /refused/);
});

test('a count that does not answer does not delay the end of the work', async () => {
  const written: unknown[] = [];
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<number>();
  let aborted: AbortSignal | undefined;
  const countDone = (signal: AbortSignal): Promise<number> => {
    aborted = signal;
    asked.resolve();
    return answer.promise;
  };
  const terminal = terminalWith({ isTTY: true, write: (text) => written.push(text) });
  await withProgress(terminal, { label: 'x', countDone, isQuiet: false, everyMs: 1 }, () => asked.promise);
  assert.equal(aborted?.aborted, true);
  answer.resolve(1);
  await setImmediate();
  assert.deepEqual(written, []);
});
