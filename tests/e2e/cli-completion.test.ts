import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { existsSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { after, before, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';

/** Real shells on a pseudo-terminal load the script and get keys; `redrive` prints its arguments instead of running. */

type Shell = Readonly<{ name: string; command: string; prepare: (script: string) => readonly string[] }>;

const shells: readonly Shell[] = [
  {
    name: 'bash',
    command: 'bash --norc --noprofile -i',
    prepare: (script) => ['bind "set bell-style none"', `source ${script}`, 'redrive() { echo "got:$*:"; }'],
  },
  {
    name: 'zsh',
    command: 'zsh -f -i',
    prepare: (script) => [
      'autoload -Uz compinit',
      'compinit -D -u',
      `source ${script}`,
      'redrive() { echo "got:$*:"; }',
    ],
  },
  {
    name: 'fish',
    command: 'fish --no-config -i',
    prepare: (script) => [`source ${script}`, 'function redrive; echo "got:$argv:"; end'],
  },
];

const completions: readonly (readonly [typed: string, completed: string])[] = [
  ['dl\t to\t', 'dlq topics'],
  ['dlq list --stat\t RES\t', 'dlq list --status RESOLVED'],
  ['dlq list orders.v1 --page-s\t 5 --al\t', 'dlq list orders.v1 --page-size 5 --all'],
  ['dlq list --status=PEN\t', 'dlq list --status=PENDING'],
  ['jobs dead --resolution dis\t', 'jobs dead --resolution discarded'],
  ['saga resolve --outcome not\t', 'saga resolve --outcome not_done'],
  ['migrate down ou\t --t\t', 'migrate down outbox --to'],
  ['--vers\t', '--version'],
  ['help sag\t lis\t', 'help saga list'],
  ['serve --config dlq.ya\t', 'serve --config dlq.yaml'],
  // The value of an option is no command, and an id has no completion.
  ['jobs list --queue que\t', 'jobs list --queue que'],
  ['dlq show lis\t', 'dlq show lis'],
];

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-completion-'));
  await writeFile(join(folder, 'dlq.yaml'), '');
});
after(() => rm(folder, { recursive: true }));

/** A reason to skip, or false. `script` is the one of Linux, with its options. */
function missing(shell: string): string | false {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const isInstalled = (program: string): boolean => folders.some((each) => existsSync(join(each, program)));
  if (process.platform !== 'linux' || !isInstalled('script')) return 'needs the script command of Linux';
  return !isInstalled(shell) && `${shell} is not installed`;
}

async function writeScript(shell: string): Promise<string> {
  let text = '';
  const write = (data: string | Uint8Array): void => void (text += data.toString());
  const terminal = { env: {}, stdin: new PassThrough(), stdout: { write }, stderr: { write } };
  assert.equal(await runCli(['completion', shell], terminal), 0);
  const file = join(folder, `redrive.${shell}`);
  await writeFile(file, text);
  return file;
}

/** Types the lines, each after the one before it has been answered, and returns what `redrive` got. */
async function typeInto(shell: Shell, script: string, lines: readonly string[]): Promise<readonly string[]> {
  const child = spawn('script', ['-qefc', shell.command, '/dev/null'], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', TERM: 'dumb', HOME: folder, PS1: '$ ', LC_ALL: 'C.UTF-8' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const waiting = [...lines];
  const got: string[] = [];
  let said = '';
  child.stdin.write(`${[...shell.prepare(script), 'redrive ready'].join('\n')}\n`);
  for await (const data of child.stdout) {
    said += String(data);
    for (let found = answer.exec(said); found !== null; found = answer.exec(said)) {
      said = said.slice(found.index + found[0].length);
      got.push(found[1]?.trim() ?? '');
      const next = waiting.shift();
      child.stdin.write(next === undefined ? 'exit\n' : `redrive ${next}\n`);
    }
  }
  return got.slice(1);
}

/** Not the echo of the function's definition. */
const answer = /(?<!echo ")got:([^$:]*):/;

for (const shell of shells)
  test(
    `${shell.name} completes commands, options and their values`,
    { skip: !process.env['CI'] && missing(shell.name) },
    async () => {
      const script = await writeScript(shell.name);
      const got = await typeInto(
        shell,
        script,
        completions.map(([typed]) => typed),
      );
      assert.deepEqual(
        got,
        completions.map(([, completed]) => completed),
      );
    },
  );
