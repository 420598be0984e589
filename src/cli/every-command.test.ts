import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, test } from 'node:test';
import { hasOption, leavesOf, wordsOf as wordsWith } from '../../tests/support/every-command.ts';
import { exitCodes } from './exit-code.ts';
import { createProgram, runCli } from './run-cli.ts';
import { pathOf } from './wrong-usage.ts';

/** Every command ends with the exit code of the table, and says why, whatever it is told or finds. */

const folder = mkdtempSync(join(tmpdir(), 'redrive-cli-'));
const workflow = join(folder, 'workflow.yaml');
writeFileSync(workflow, 'name: w\nsteps: []\n');
after(() => rmSync(folder, { recursive: true }));

let url = '';
let status = 404;
const server = createServer((_request, response) => {
  const error = { code: 'SYS_TEST', message: 'the server says no', request_id: 'r', details: [] };
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
});
before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => void server.close());

const silent = { env: {}, stdin: new PassThrough(), stdout: { write() {} }, stderr: { write() {} } };
const leaves = leavesOf(createProgram(silent));
// A logout works without the server.
const asking = leaves.filter((command) => hasOption(command, '--url') && command.name() !== 'logout');
const configured = leaves.filter((command) => hasOption(command, '--config'));
const wordsOf = (command: (typeof leaves)[number]): readonly string[] => wordsWith(command, workflow);

async function run(
  words: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Readonly<{ code: number; err: string }>> {
  let err = '';
  const stderr = { write: (data: string | Uint8Array): void => void (err += data.toString()) };
  return { code: await runCli(words, { ...silent, env, stderr }), err };
}

async function assertEnds(
  words: readonly string[],
  expected: Readonly<{ code: number; says: RegExp }>,
  env: NodeJS.ProcessEnv = {},
): Promise<void> {
  const { code, err } = await run(words, env);
  assert.equal(code, expected.code, `${words.join(' ')}: ${err}`);
  assert.match(err, expected.says);
  assert.match(err, /^redrive: /);
}

async function assertEndsWithJson(words: readonly string[], code: number, env: NodeJS.ProcessEnv = {}) {
  const { err } = await run([...words, '--json'], env);
  const { error } = JSON.parse(err) as { error: Readonly<Record<string, unknown>> };
  assert.deepEqual(Object.keys(error), ['code', 'message', 'request_id', 'details', 'exit_code']);
  assert.equal(error['exit_code'], code);
}

test('the walk finds the commands', () => {
  assert.ok(leaves.length > 45);
  assert.ok(asking.length > 35);
  assert.ok(configured.length > 6);
});

test('every command ends with 2 on an option that it does not have', async () => {
  for (const command of leaves) {
    const words = [...wordsOf(command), '--no-such-option'];
    await assertEnds(words, { code: exitCodes.usage, says: /unknown option '--no-such-option'/ });
    await assertEndsWithJson(words, exitCodes.usage);
  }
});

test('every command of a server ends with 69 if there is no server', async () => {
  for (const command of asking) {
    const words = [...wordsOf(command), '--url', 'http://127.0.0.1:1'];
    await assertEnds(words, { code: exitCodes.unavailable, says: /nothing listens at/ });
    if (hasOption(command, '--json')) await assertEndsWithJson(words, exitCodes.unavailable);
  }
});

for (const [answered, code] of [
  [400, exitCodes.usage],
  [404, exitCodes.failed],
  [409, exitCodes.failed],
  [500, exitCodes.failed],
  [503, exitCodes.unavailable],
] as const)
  test(`every command of a server ends with ${code} on an answer ${answered}`, async () => {
    status = answered;
    for (const command of asking) {
      const words = [...wordsOf(command), '--url', url];
      await assertEnds(words, { code, says: /the server says no \(SYS_TEST\)\n {2}request id: r\n$/ });
      if (hasOption(command, '--json')) await assertEndsWithJson(words, code);
    }
  });

test('every command with a configuration ends with 78 if its file is missing', async () => {
  for (const command of configured) {
    // doctor reports the problem as a result.
    if (command.name() === 'doctor') continue;
    const { code, err } = await run([...wordsOf(command), '--config', join(folder, 'none.yaml')]);
    assert.equal(code, exitCodes.badConfig, `${pathOf(command)}: ${err}`);
    assert.match(err, /none\.yaml/);
  }
  const { code } = await run(['doctor', '--config', join(folder, 'none.yaml')]);
  assert.equal(code, exitCodes.badConfig);
});

test('every command of the database ends with 69 if there is no database', async () => {
  for (const command of configured) {
    if (['dev', 'doctor', 'check'].includes(command.name())) continue;
    await assertEnds(
      wordsOf(command),
      { code: exitCodes.unavailable, says: /nothing listens at 127\.0\.0\.1:1/ },
      { DATABASE_URL: 'postgres://redrive@127.0.0.1:1/redrive' },
    );
  }
});
