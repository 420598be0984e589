import assert from 'node:assert/strict';
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
