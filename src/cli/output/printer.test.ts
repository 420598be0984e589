import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { Terminal } from '../terminal.ts';
import { createPrinter } from './printer.ts';

function fakeTerminal(
  stdout: Readonly<{ isTTY?: boolean; columns?: number }>,
  env: NodeJS.ProcessEnv = {},
): Terminal & Readonly<{ written: () => string }> {
  let text = '';
  const write = (data: string | Uint8Array): void => void (text += data.toString());
  return {
    env,
    stdin: new PassThrough(),
    stdout: { ...stdout, write },
    stderr: { write },
    written: () => text,
  };
}

test('colours are for terminals only', () => {
  const painted = (stdout: Readonly<{ isTTY?: boolean }>, env?: NodeJS.ProcessEnv): string =>
    createPrinter(fakeTerminal(stdout, env)).paint('bad', 'DEAD');
  assert.equal(painted({ isTTY: true }), '\u001b[31mDEAD\u001b[39m');
  assert.equal(painted({ isTTY: true }, { NO_COLOR: '' }), '\u001b[31mDEAD\u001b[39m');
  assert.equal(painted({ isTTY: true }, { NO_COLOR: '1' }), 'DEAD');
  assert.equal(painted({ isTTY: true }, { TERM: 'dumb' }), 'DEAD');
  assert.equal(painted({}), 'DEAD');
});

test('FORCE_COLOR turns colours on everywhere and wins over NO_COLOR', () => {
  const painted = (stdout: Readonly<{ isTTY?: boolean }>, env: NodeJS.ProcessEnv): string =>
    createPrinter(fakeTerminal(stdout, env)).paint('bad', 'DEAD');
  const red = '\u001b[31mDEAD\u001b[39m';
  assert.equal(painted({}, { FORCE_COLOR: '1' }), red);
  assert.equal(painted({}, { FORCE_COLOR: 'true', NO_COLOR: '1', TERM: 'dumb' }), red);
  assert.equal(painted({}, { FORCE_COLOR: '' }), 'DEAD');
  assert.equal(painted({ isTTY: true }, { FORCE_COLOR: '0' }), 'DEAD');
});

test('JSON is piped unchanged and escaped on a terminal', () => {
  const json = '{"n":1.10,"text":"\u009b31m \u202e"}';
  const pipe = fakeTerminal({});
  createPrinter(pipe).json(json);
  assert.equal(pipe.written(), `${json}\n`);
  const screen = fakeTerminal({ isTTY: true });
  createPrinter(screen).json(json);
  assert.equal(screen.written(), '{"n":1.10,"text":"\\u009b31m \\u202e"}\n');
});

test('a table is cut to the terminal width and is never cut in a pipe', () => {
  const columns = [{ title: 'ERROR', text: (row: string) => row, minWidth: 5 }];
  const screen = fakeTerminal({ isTTY: true, columns: 8 });
  createPrinter(screen).table(columns, ['connection refused']);
  assert.equal(screen.written(), 'ERROR\nconnect…\n');
  const pipe = fakeTerminal({ columns: 8 });
  createPrinter(pipe).table(columns, ['connection refused']);
  assert.equal(pipe.written(), 'ERROR\nconnection refused\n');
});

test('a table is not cut on a terminal of unknown width', () => {
  const columns = [
    { title: 'NAME', text: (row: string) => row, minWidth: 5 },
    { title: 'ERROR', text: () => 'connection refused', minWidth: 5 },
  ];
  for (const width of [0, undefined, NaN]) {
    const screen = fakeTerminal({ isTTY: true, ...(width === undefined ? {} : { columns: width }) });
    createPrinter(screen).table(columns, ['orders.v1']);
    assert.equal(screen.written(), 'NAME       ERROR\norders.v1  connection refused\n');
  }
});

test('lines and notes escape all control characters but our colours', () => {
  const screen = fakeTerminal({ isTTY: true });
  const print = createPrinter(screen);
  print.line(`${print.paint('bad', 'DEAD')} \u001b[2J\u009b31m\u202e`);
  print.note('a\nb');
  assert.equal(screen.written(), '\u001b[31mDEAD\u001b[39m \\u001b[2J\\u009b31m\\u202e\na\\nb\n');
});
