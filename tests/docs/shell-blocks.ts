import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { createProgram } from '../../src/cli/run-cli.ts';
import { loadConfig } from '../../src/config/config.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

type OpenApi = Readonly<{ paths: Readonly<Record<string, Readonly<Record<string, unknown>>>> }>;

/** The commands of a block; of a `console` block those behind a `$`, without what they print. */
export function commandsIn(language: string, text: string): readonly string[] {
  const lines = text.split('\n').map((line) => line.trim());
  const typed =
    language === 'console'
      ? lines.filter((line) => line.startsWith('$ ')).map((line) => line.slice(2))
      : lines;
  return typed.flatMap((line) => withoutComment(line).split(' && ')).filter((command) => command !== '');
}

function withoutComment(line: string): string {
  return line.replace(/(^|\s)#.*$/, '').trim();
}

/** Fails for a command that there is not, or not with these arguments. Nothing is run. */
export async function checkCommand(command: string): Promise<void> {
  const words = wordsOf(command);
  const variables = words[0] === 'export' ? words.slice(1) : words.slice(0, countAssignments(words));
  for (const variable of variables) checkVariable(variable);
  const [name = '', ...args] = words[0] === 'export' ? [] : words.slice(variables.length);
  switch (name) {
    case '':
      return;
    case 'npx':
      return checkCommand(args.join(' ') === '' ? '' : command.slice(command.indexOf('npx ') + 4));
    case 'redrive':
      return checkRedrive(args);
    case 'npm':
      return checkNpm(args);
    case 'node':
      assert.ok(existsSync(`${root}${args[0]}`), `there is no ${args[0]}`);
      return;
    case 'curl':
      return checkCurl(args);
    case 'docker':
    case 'helm':
    case 'kubectl':
    case 'createdb':
    case 'psql':
    case 'vault':
    case 'systemctl':
    case 'systemd-analyze':
    case 'pg_basebackup':
    case 'pg_dump':
    case 'pg_restore':
      return checkNamedFiles(args);
    default:
      assert.fail(`nobody knows how to check \`${command}\`: teach tests/docs/shell-blocks.ts`);
  }
}

/** As a shell divides them, as far as the documents go: blanks, and quotes around whole parts. */
export function wordsOf(command: string): readonly string[] {
  return [...command.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
    word.replaceAll(/'([^']*)'|"([^"]*)"/g, '$1$2'),
  );
}

function countAssignments(words: readonly string[]): number {
  const first = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
  return first < 0 ? words.length : first;
}

function checkVariable(assignment: string): void {
  const [, name = '', value = ''] = /^([A-Z_]+)=(.*)$/s.exec(assignment) ?? [];
  assert.notEqual(name, '', `${assignment} is no assignment`);
  const { warnings } = loadConfig({ env: { [name]: value }, secretsDir: '/nonexistent' });
  assert.deepEqual(warnings, []);
}

/** The real program, except that its commands do nothing. */
async function checkRedrive(args: readonly string[]): Promise<void> {
  let said = '';
  const output = { write: (text: string | Uint8Array): void => void (said += text.toString()) };
  const program = createProgram({ env: {}, stdin: new PassThrough(), stdout: output, stderr: output });
  disarm(program);
  await program.parseAsync(args, { from: 'user' }).catch(() => assert.fail(said));
}

function disarm(command: Command): void {
  for (const child of command.commands) {
    disarm(child);
    if (child.commands.length === 0) child.action(() => {});
  }
}

function checkNpm([command = '', script]: readonly string[]): void {
  const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { scripts: object };
  if (command === 'ci' || command === 'install') return;
  const name = command === 'run' ? script : command;
  assert.ok(name !== undefined && name in scripts, `there is no script ${name}`);
}

/** Of a program that is not ours only the files are checked. */
function checkNamedFiles(args: readonly string[]): void {
  for (const [path] of args.join(' ').matchAll(/(?<![\w/])(?:deploy|config|docs)\/[\w./-]*/g))
    assert.ok(existsSync(`${root}${path}`), `there is no ${path}`);
}

/** The description of the API must know the address. */
function checkCurl(args: readonly string[]): void {
  const url = args.find((word) => word.startsWith('http'));
  assert.ok(url !== undefined, 'there is no URL');
  const method = args.includes('-X') ? (args[args.indexOf('-X') + 1] ?? '') : 'GET';
  const { pathname } = new URL(url);
  const { paths } = JSON.parse(readFileSync(`${root}docs/openapi.json`, 'utf8')) as OpenApi;
  const known = Object.entries(paths).some(
    ([path, methods]) =>
      method.toLowerCase() in methods &&
      new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(pathname),
  );
  assert.ok(known, `the API has no ${method} ${pathname}`);
}
