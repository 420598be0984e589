import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import type { Terminal } from '../terminal.ts';
import { progressLine, withProgress } from './retry-progress.ts';

test('a line shows the count, the rate and the remaining time', () => {
  const lines = [
    { done: 0, total: 20_000, elapsedMs: 1000 },
    { done: 5000, total: 20_000, elapsedMs: 5000 },
    { done: 1000, total: 1_000_000, elapsedMs: 1000 },
    { done: 100, total: 1_000_000, elapsedMs: 1000 },
  ].map(progressLine);
  assert.deepEqual(lines, [
    '0 of 20,000 messages, 0 per second',
    '5,000 of 20,000 messages, 1,000 per second, 15 s left',
    '1,000 of 1,000,000 messages, 1,000 per second, 17 min left',
    '100 of 1,000,000 messages, 100 per second, 2 h 47 min left',
  ]);
});

/** Shows progress until two lines have been written. */
async function twoLines(isTTY: boolean): Promise<string> {
  let written = '';
  const enough = Promise.withResolvers<string>();
  const write = (text: string | Uint8Array): void => {
    written += String(text);
    if (written.match(/messages/g)?.length === 2) enough.resolve('done');
  };
  const terminal: Terminal = {
    env: {},
    stdin: Readable.from([]),
    stdout: { write: () => {} },
    stderr: { write, isTTY },
  };
  let left = 10;
  const countLeft = async (): Promise<number> => {
    left -= 3;
    if (left === 4) throw new Error('the server did not answer');
    return left;
  };
  assert.equal(await withProgress(terminal, { total: 10, countLeft, everyMs: 1 }, enough.promise), 'done');
  return written;
}

test('on a terminal one line is rewritten and erased at the end, elsewhere every update is a new line', async () => {
  const onTerminal = await twoLines(true);
  assert.ok(onTerminal.startsWith('\r\u001b[K3 of 10 messages') && onTerminal.endsWith('\r\u001b[K'));
  assert.ok(!onTerminal.includes('\n'));
  const inLog = await twoLines(false);
  assert.match(inLog, /^3 of 10 messages.*\n9 of 10 messages.*\n$/);
});

test('a failure of the work is rethrown', async () => {
  const terminal = { env: {}, stdin: Readable.from([]), stdout: { write() {} }, stderr: { write() {} } };
  const how = { total: 1, countLeft: async () => 1 };
  await assert.rejects(withProgress(terminal, how, Promise.reject(new Error('refused'))), /refused/);
});
