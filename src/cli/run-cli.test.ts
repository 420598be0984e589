import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { Command } from 'commander';
import { createProgram, runCli } from './run-cli.ts';

async function run(
  ...args: readonly string[]
): Promise<Readonly<{ code: number; out: string; err: string }>> {
  const said = { out: '', err: '' };
  const into = (stream: 'out' | 'err') => ({
    write: (data: string | Uint8Array): void => void (said[stream] += data.toString()),
  });
  const code = await runCli(args, {
    env: {},
    stdin: new PassThrough(),
    stdout: into('out'),
    stderr: into('err'),
  });
  return { code, ...said };
}

function commandsOf(command: Command, path: readonly string[] = []): readonly (readonly string[])[] {
  return command.commands.flatMap((child) => {
    const own = [...path, child.name()];
    return [own, ...commandsOf(child, own)];
  });
}

const terminal = { env: {}, stdin: new PassThrough(), stdout: { write() {} }, stderr: { write() {} } };

for (const path of commandsOf(createProgram(terminal)))
  test(`redrive ${path.join(' ')} --help describes the command and gives an example`, async () => {
    const { code, out } = await run(...path, '--help');
    assert.equal(code, 0);
    const [usage, , description] = out.split('\n');
    assert.match(usage ?? '', new RegExp(`^Usage: redrive ${path.join(' ')}`));
    assert.match(description ?? '', /^\w/);
    assert.match(out, new RegExp(`\\nExamples?:\\n.*redrive ${path.join(' ')}`));
  });

test('redrive help <command> is redrive <command> --help', async () => {
  assert.deepEqual(await run('help', 'dlq', 'retry'), await run('dlq', 'retry', '--help'));
  assert.deepEqual(await run('help'), await run('--help'));
});

test('redrive --version prints the version', async () => {
  const { code, out } = await run('--version');
  assert.equal(code, 0);
  assert.match(out, /^\d+\.\d+\.\d+\n$/);
});

test('redrive without arguments prints its help as a usage error', async () => {
  const { code, out, err } = await run();
  assert.deepEqual([code, out], [2, '']);
  assert.match(err, /^Usage: redrive/);
});

const wrong: readonly (readonly [args: string, error: RegExp])[] = [
  ['srve', /unknown command 'srve'; did you mean serve\?\nCommands: serve, .*\nRun `redrive --help`\./],
  ['dlq lst', /unknown command 'lst'; did you mean list\?\nCommands: topics, .*\nRun `redrive dlq --help`\./],
  [
    'dlq list --pagesize 3',
    /unknown option '--pagesize'; did you mean --page-size\?\nUsage: .*\nOptions: --status, .*--page, --page-size, /,
  ],
  ['help srve', /unknown command 'srve'; did you mean serve\?/],
  ['srve --help', /unknown command 'srve'; did you mean serve\?/],
  ['dlq lst --help', /unknown command 'lst'; did you mean list\?/],
  ['jobs list --since yesterday', /Must be a time, such as .*, or how long ago, such as 30m, 2h or 7d/],
  ['jobs list --since 999999999d', /too long ago/],
  ['dlq list --page 0', /Must be a whole number from 1/],
  ['dlq list --status gone', /Allowed choices are PENDING, RETRYING, RESOLVED, DEAD/],
  ['dlq list --status daed', /Did you mean DEAD\? Allowed choices are PENDING/],
  ['completion zhs', /Allowed choices are bash, zsh, fish/],
  ['dlq list --all --page 2', /cannot be used with/],
  ['dlq show', /missing required argument 'id'\nUsage: redrive dlq show \[options\] <id>\n/],
  [
    'dlq reopen x',
    /required option '--reason <text>' not specified\nUsage: redrive dlq reopen --reason <text> \[options\] <id>/,
  ],
  ['dlq seek t 0 --reason r', /give --offset, --timestamp or --earliest/],
  ['dlq seek t 0 --reason r --offset 1 --earliest', /cannot be used with/],
  ['dlq raw x --key --value', /cannot be used with/],
  ['dlq delete 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31', /not interactive; pass --yes to confirm/],
  ['dlq show 01a1d', /01a1d is not a message id: give a UUID, or at least its first 6 characters/],
  ['dlq topics --url localhost', /--url is not an http/],
  ['migrate down nothing --to 1', /Allowed choices are platform, dlq, outbox, jobs, saga/],
  ['migrate down dlq --to x', /Must be a whole number/],
  ['dlq archive --retention-days 400', /must not be less than/],
];

for (const [args, error] of wrong)
  test(`redrive ${args} is a usage error`, async () => {
    const { code, out, err } = await run(...args.split(' '));
    assert.deepEqual([code, out], [2, '']);
    assert.match(err, error);
    assert.match(err, /^redrive: /);
  });

test('an unreachable server is named, with advice', async () => {
  const { code, out, err } = await run('dlq', 'topics', '--url', 'http://user:hunter2@127.0.0.1:1');
  assert.deepEqual([code, out], [69, '']);
  assert.match(err, /nothing listens at http:\/\/127\.0\.0\.1:1: start the server .* --url or REDRIVE_URL/);
});

test('help into a pipe whose reader has gone is no error', async () => {
  const main = new URL('../main.ts', import.meta.url).pathname;
  const child = spawn('sh', ['-c', `"${process.execPath}" "${main}" dlq --help | true`]);
  assert.equal(await text(child.stderr), '');
});
