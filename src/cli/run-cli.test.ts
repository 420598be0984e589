import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
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

test('redrive help asks for the help of any command', async () => {
  assert.deepEqual(await run('help', 'dlq', 'retry'), await run('dlq', 'retry', '--help'));
  assert.deepEqual(await run('help'), await run('--help'));
});

test('redrive --version prints the version', async () => {
  const { code, out } = await run('--version');
  assert.equal(code, 0);
  assert.match(out, /^\d+\.\d+\.\d+\n$/);
});

test('redrive alone explains itself, and has not been told what to do', async () => {
  const { code, out, err } = await run();
  assert.deepEqual([code, out], [2, '']);
  assert.match(err, /^Usage: redrive/);
});

const wrong: readonly (readonly [args: string, error: RegExp])[] = [
  ['srve', /unknown command 'srve'\n\(Did you mean serve\?\)\nredrive --help explains it\./],
  ['dlq lst', /unknown command 'lst'\n\(Did you mean list\?\)\nredrive dlq --help explains it\./],
  ['dlq list --pagesize 3', /unknown option '--pagesize'\n\(Did you mean --page-size\?\)/],
  ['dlq list --page 0', /not a whole number from 1/],
  ['dlq list --status gone', /none of PENDING, RETRYING, RESOLVED, DEAD/],
  ['dlq list --all --page 2', /cannot be used with/],
  ['dlq show', /missing required argument 'id'/],
  ['dlq reopen x', /required option '--reason <text>' not specified/],
  ['dlq seek t 0 --reason r', /give --offset, --timestamp or --earliest/],
  ['dlq seek t 0 --reason r --offset 1 --earliest', /cannot be used with/],
  ['dlq raw x --key --value', /cannot be used with/],
  ['dlq delete x', /say so with --yes/],
  ['dlq topics --url localhost', /--url is not a URL with http/],
  ['migrate down nothing --to 1', /unknown slice: nothing/],
  ['migrate down dlq --to x', /not a whole number/],
  ['dlq archive --retention-days 400', /must not be less than/],
];

for (const [args, error] of wrong)
  test(`redrive ${args} is refused as wrong usage`, async () => {
    const { code, out, err } = await run(...args.split(' '));
    assert.deepEqual([code, out], [2, '']);
    assert.match(err, error);
    assert.match(err, /^redrive: /);
  });

test('a server that is not there is named, with what to do', async () => {
  const { code, out, err } = await run('dlq', 'topics', '--url', 'http://user:hunter2@127.0.0.1:1');
  assert.deepEqual([code, out], [69, '']);
  assert.match(err, /nothing listens at http:\/\/127\.0\.0\.1:1: start the server .* --url or REDRIVE_URL/);
});
