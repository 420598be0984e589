import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { runRedrive, startServerProcess } from '../support/redrive-process.ts';
import { databaseEnv } from '../support/pooler.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const warning =
  /^server\.allow_unauthenticated is true and server\.host is 0\.0\.0\.0: everyone who can reach this port can read and change everything/;

test('a server that everyone can reach without authentication says so in its log and in doctor', async () => {
  const env = {
    ...databaseEnv(database.url),
    SERVER_HOST: '0.0.0.0',
    SERVER_ALLOW_UNAUTHENTICATED: 'true',
  };
  const server = await startServerProcess(env);
  const { code } = await server.stop();
  assert.equal(code, 0);
  const warned = server.log().filter(({ level, msg }) => level === 'warn' && warning.test(msg));
  assert.equal(warned.length, 1);
  const examined = await runRedrive(['doctor', '--json'], env);
  const { checks } = JSON.parse(examined.out) as { checks: readonly { status: string; found: string }[] };
  assert.ok(checks.some(({ status, found }) => status === 'warning' && warning.test(found)));
});

test('a wrong configuration ends every command that reads it with 78', async () => {
  for (const command of [['serve'], ['doctor'], ['migrate', 'status'], ['dev'], ['dlq', 'archive']])
    assert.equal((await runRedrive(command, { SERVER_PORT: 'abc' })).code, 78, command.join(' '));
});

test('a server answers to its own names only, reads and writes', async (t) => {
  const env = { ...databaseEnv(database.url), SERVER_ALLOWED_HOSTS: 'ops.internal' };
  const server = await startServerProcess(env);
  t.after(() => server.stop());
  const { port } = new URL(server.url);
  const statusFor = async (method: string, path: string, host: string): Promise<number | undefined> => {
    const asked = request({ port, method, path, headers: { host } }).end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    answer.resume();
    return answer.statusCode;
  };
  for (const [host, status] of [
    ['rebound.example.com', 421],
    ['ops.internal', 200],
    [`127.0.0.1:${port}`, 200],
  ] as const)
    assert.equal(await statusFor('GET', '/api/v1/jobs/queues', host), status, host);
  assert.equal(await statusFor('POST', '/api/v1/dlq/orders.v1/retry-all', 'rebound.example.com'), 421);
});
