import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, test } from 'node:test';
import { hasOption, leavesOf, wordsOf } from '../../tests/support/every-command.ts';
import { operations, resolve } from '../../tests/support/openapi-document.ts';
import { allAttacks, harmful } from '../../tests/support/terminal-attacks.ts';
import { createProgram, runCli } from './run-cli.ts';
import { pathOf } from './wrong-usage.ts';

/** Every command of a server, against one that answers as the API description says, with attacks in place of all texts. */

const folder = mkdtempSync(join(tmpdir(), 'redrive-hostile-'));
const workflow = join(folder, 'workflow.yaml');
writeFileSync(workflow, 'name: w\nsteps: []\n');
after(() => rmSync(folder, { recursive: true }));

function poisoned(value: unknown): unknown {
  if (typeof value === 'string') return allAttacks;
  if (Array.isArray(value)) return value.map(poisoned);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([name, inner]) => [name, poisoned(inner)] as const);
  // Some answers have names from outside: headers, counts by topic.
  return Object.fromEntries([...fields, [allAttacks, allAttacks]]);
}

type Answered = Readonly<{ status: number; type: string; body: string }>;

function answerTo(method: string, path: string): Answered {
  const found = operations.find(
    (one) =>
      one.method === method.toLowerCase() &&
      new RegExp(`^${one.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
  );
  const [status = '404', response] =
    Object.entries(found?.operation.responses ?? {}).find(([code]) => code.startsWith('2')) ?? [];
  const [type = 'application/json', media] =
    Object.entries(response === undefined ? {} : (resolve(response).content ?? {}))[0] ?? [];
  if (type !== 'application/json') return { status: Number(status), type, body: allAttacks };
  return { status: Number(status), type, body: JSON.stringify(poisoned(media?.example)) };
}

let url = '';
/** The commands that printed a text of their answer. */
const showing = new Set<string>();
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost');
  const { status, type, body } = answerTo(request.method ?? '', pathname);
  response.writeHead(status, { 'content-type': type }).end(body);
});
before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => void server.close());

const silent = { env: {}, stdin: new PassThrough(), stdout: { write() {} }, stderr: { write() {} } };
const asking = leavesOf(createProgram(silent)).filter((command) => hasOption(command, '--url'));

async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  let said = '';
  const screen = {
    isTTY: true,
    columns: 0,
    write: (data: string | Uint8Array) => void (said += data.toString()),
  };
  await runCli(args, { env, stdin: new PassThrough(), stdout: screen, stderr: screen });
  return said;
}

/** Without the colours that commands write themselves. */
function assertHarmless(said: string, about: string): void {
  // oxlint-disable-next-line no-control-regex -- the colours of the printer
  for (const line of said.replaceAll(/\u001b\[\d{1,2}m/g, '').split('\n')) {
    assert.doesNotMatch(line, harmful, `${about}: ${JSON.stringify(line.slice(0, 300))}`);
    assert.doesNotMatch(line, /^forged/, about);
  }
}

for (const command of asking)
  test(`${pathOf(command)} prints nothing of a hostile answer that a terminal acts on`, async () => {
    const words = [...wordsOf(command, workflow), '--url', url];
    for (const [more, env] of [
      [[], { NO_COLOR: '1' }],
      [[], { FORCE_COLOR: '1' }],
      [['--json'], { NO_COLOR: '1' }],
    ] as const) {
      const args = more.length > 0 && !hasOption(command, '--json') ? words : [...words, ...more];
      const said = await run(args, env);
      if (said.includes('forged')) showing.add(pathOf(command));
      assertHarmless(said, args.join(' '));
    }
  });

test('nearly every command has printed a text of its answer', () => {
  const silentOnes = asking.map(pathOf).filter((path) => !showing.has(path));
  assert.ok(silentOnes.length <= asking.length / 10, silentOnes.join('\n'));
});
