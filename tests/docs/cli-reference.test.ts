import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { Command } from 'commander';
import { exitCodeMeanings, exitCodes } from '../../src/cli/exit-code.ts';
import { createProgram } from '../../src/cli/run-cli.ts';
import { assertApproved } from '../support/approved.ts';

/** The page of the command line has the commands and exit codes of the program. */

const page = new URL('../../docs/reference/cli.md', import.meta.url);
const silent = { env: {}, stdin: new PassThrough(), stdout: { write() {} }, stderr: { write() {} } };

function rowsOf(command: Command): readonly string[] {
  if (command.commands.length > 0) return command.commands.flatMap(rowsOf);
  const usage = command.createHelp().commandUsage(command).replaceAll('|', '\\|');
  const json = command.options.find(({ long }) => long === '--json')?.description;
  const route = /answer of (.*)/.exec(json ?? '')?.[1];
  const printed = json === undefined ? '' : route === undefined ? 'see below' : `\`${route}\``;
  return [`| \`${usage}\` | ${command.description()} | ${printed} |`];
}

const tables: Readonly<Record<string, readonly string[]>> = {
  commands: [
    '| command | what it does | `--json` |',
    '| --- | --- | --- |',
    ...createProgram(silent).commands.flatMap(rowsOf),
  ],
  'exit codes': [
    '| code | meaning |',
    '| --- | --- |',
    ...Object.entries(exitCodes).map(
      ([name, code]) => `| ${code} | ${exitCodeMeanings[name as keyof typeof exitCodes]} |`,
    ),
  ],
};

test('the page lists the commands and the exit codes of the program', async () => {
  let text = await readFile(page, 'utf8');
  for (const [name, rows] of Object.entries(tables)) {
    const place = new RegExp(`(<!-- ${name} -->\\n\\n)[^]*?(<!-- end -->)`);
    assert.match(text, place);
    text = text.replace(
      place,
      (_found, start: string, end: string) => `${start}${rows.join('\n')}\n\n${end}`,
    );
  }
  await assertApproved(page, text);
});
