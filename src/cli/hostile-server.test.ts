import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { runCli } from './run-cli.ts';

/** The answers may come from any server, also from a hostile one. */

const evil = '\u001b[2J\u009b31m\u202e\u2066\u2028\r\nforged';
const harmful = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

async function serve(t: TestContext, status: number, body: unknown): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function run(args: readonly string[]): Promise<Readonly<{ code: number; said: string }>> {
  let said = '';
  const write = (data: string | Uint8Array): void => void (said += data.toString());
  const screen = { isTTY: true, columns: 0, write };
  const env = { NO_COLOR: '1' };
  const code = await runCli(args, { env, stdin: new PassThrough(), stdout: screen, stderr: screen });
  return { code, said };
}

function assertHarmless(said: string): void {
  for (const line of said.split('\n')) {
    assert.doesNotMatch(line, harmful);
    assert.doesNotMatch(line, /^forged/);
  }
}

const texts = ['id', 'job_id', 'saga_id', 'status', 'message', 'queue', 'paused_by', 'paused_reason'];
const counts = ['retry_count', 'max_retries'];

/** What the commands below read of an answer. */
const answer = {
  ...Object.fromEntries([...texts, ...counts].map((field) => [field, evil])),
  paused: true,
  published: true,
};

for (const command of [
  'dlq retry 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
  'dlq dead 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
  'jobs cancel 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
  'jobs pause mail',
  'outbox cancel 7',
  'saga cancel 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --reason why',
])
  test(`redrive ${command} prints no control characters`, async (t) => {
    const url = await serve(t, 200, answer);
    const { said } = await run([...command.split(' '), '--url', url]);
    assert.match(said, /forged/);
    assertHarmless(said);
  });

for (const [what, error] of [
  ['control characters', { code: evil, message: evil, request_id: evil, details: [] }],
  [
    'details of any kind',
    { message: evil, details: [{ field: evil, message: evil }, null, 5, { field: {} }] },
  ],
  ['numbers in place of texts', { code: 5, message: 5, request_id: {}, details: 5 }],
] as const)
  test(`an error with ${what} is printed without control characters`, async (t) => {
    const url = await serve(t, 400, { error });
    const { code, said } = await run(['dlq', 'topics', '--url', url]);
    assert.notEqual(code, 0);
    assert.match(said, /^redrive: /);
    assert.doesNotMatch(said, /is not a function|Cannot read/);
    assertHarmless(said);
  });

test('a wrong argument is printed without control characters', async () => {
  const { code, said } = await run(['dlq', `no\u202esuch\u009b`]);
  assert.equal(code, 2);
  assertHarmless(said);
});
