import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client } from 'pg';
import type { ApiClient } from '../support/api-client.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createDatabaseRole, type DatabaseRole } from '../support/database-role.ts';
import { eventually } from '../support/eventually.ts';
import { runHttpFlows } from '../support/every-flow/http-flows.ts';
import { openOutsideWorld, type OutsideWorld } from '../support/every-flow/outside-world.ts';
import { loggerInto, type LoggedLine } from '../support/logged-lines.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

type Login = Readonly<{ username: string; password: string }>;
type Readiness = Readonly<{
  status: string;
  checks: Record<string, { status: string; message?: string }>;
}>;

/** The login comes from a file that changes, as Vault's agent writes it, while the server works. */
describe('a login that rotates', () => {
  let database: TestDatabase;
  let group: DatabaseRole;
  let world: OutsideWorld;
  let owner: Client;
  const made: Login[] = [];
  before(async () => {
    database = await createTestDatabase();
    group = await createDatabaseRole(database.url, 'server');
    world = await openOutsideWorld();
    owner = new Client({ connectionString: database.url });
    await owner.connect();
  });
  after(async () => {
    for (const login of made) await drop(login);
    await owner.end();
    await group.drop();
    await world.close();
    await database.drop();
  });

  /** `creation_statements` of a role of Vault's database engine. */
  const create = async (): Promise<Login> => {
    const login = {
      username: `v-kubernet-redrive-${randomBytes(5).toString('hex')}`,
      password: randomBytes(10).toString('hex'),
    };
    await owner.query(
      `CREATE ROLE "${login.username}" WITH LOGIN PASSWORD '${login.password}'
         VALID UNTIL '2100-01-01 00:00:00+00' INHERIT;
       GRANT "${group.name}" TO "${login.username}"`,
    );
    made.push(login);
    return login;
  };
  /** `revocation_statements`. */
  const drop = async ({ username }: Login): Promise<void> => {
    await owner.query(`DROP ROLE IF EXISTS "${username}"`);
  };
  const sessionsOf = async ({ username }: Login): Promise<readonly string[]> => {
    const { rows } = await owner.query<{ query: string }>(
      'SELECT query FROM pg_stat_activity WHERE usename = $1 AND datname = current_database()',
      [username],
    );
    return rows.map(({ query }) => query);
  };
  const haveEnded = (login: Login): Promise<void> =>
    eventually(async () => assert.deepEqual(await sessionsOf(login), []));

  type Scene = Readonly<{ system: TestSystem; lines: LoggedLine[]; write(login: Login): void; first: Login }>;
  const open = async (t: { after(work: () => unknown): void }): Promise<Scene> => {
    const secretsDir = mkdtempSync(join(tmpdir(), 'rotating-login-'));
    const write = (login: Login): void => {
      writeFileSync(join(secretsDir, 'new'), `${JSON.stringify(login)}\n`);
      renameSync(join(secretsDir, 'new'), join(secretsDir, 'database.json'));
    };
    const first = await create();
    write(first);
    const url = new URL(database.url);
    url.username = '';
    url.password = '';
    const lines: LoggedLine[] = [];
    const system = await startTestSystem({
      kafka: 'local',
      database,
      secretsDir,
      logger: loggerInto(lines),
      env: { ...world.env, DATABASE_URL: url.href, DATABASE_MIGRATE: 'false', DATABASE_MAX_OPEN_CONNS: '8' },
    });
    t.after(async () => {
      await system.stop();
      rmSync(secretsDir, { recursive: true });
    });
    return { system, lines, write, first };
  };

  test('no request and no work fails while the role is replaced and dropped under load', async (t) => {
    const { system, lines, write, first } = await open(t);
    const load = startLoad(system);
    await load.reads(50);
    const second = await create();
    write(second);
    await haveEnded(first);
    await drop(first);
    await load.round();
    assert.deepEqual(await load.stop(), []);
    const sessions = await sessionsOf(second);
    assert.ok(
      sessions.some((query) => query.startsWith('LISTEN')),
      sessions.join('\n'),
    );
    assert.deepEqual(
      lines.filter(({ level, err }) => level !== 'info' && err !== undefined),
      [],
    );
    assert.equal(await reloads(system, 'reloaded'), 1);
    assert.equal(await reloads(system, 'refused'), 0);
  });

  test('a wrong password in the file breaks nothing, is counted and reported, and is tried again', async (t) => {
    const { system, lines, write, first } = await open(t);
    const load = startLoad(system);
    write({ ...first, password: 'wrong' });
    await eventually(async () => assert.ok((await reloads(system, 'refused')) >= 1));
    await load.reads(100);
    assert.deepEqual(await load.stop(), []);
    const { status, body } = await system.api.get<Readiness>('/readyz');
    assert.deepEqual([status, body.status], [200, 'degraded']);
    assert.match(body.checks['database_login']?.message ?? '', /refuses the login from .*database\.json: /);
    assert.equal(lines.filter(({ msg }) => msg.startsWith('keeping the database login')).length, 1);
    assert.ok(!JSON.stringify(lines).includes('"wrong"'));
    const second = await create();
    write(second);
    await haveEnded(first);
    await eventually(async () => {
      const answer = await system.api.get<Readiness>('/readyz');
      assert.equal(answer.body.checks['database_login']?.status, 'healthy');
    });
  });

  test('a role that is dropped before its successor is written is reported, and work goes on with the successor', async (t) => {
    const { system, write, first } = await open(t);
    await drop(first);
    await eventually(async () => {
      const { status, body } = await system.api.get<Readiness>('/readyz');
      assert.equal(status, 503);
      // Connections that are still open say the one, new ones the other.
      assert.match(
        body.checks['database']?.message ?? '',
        /role of this process was dropped|authentication failed for user "v-.*; provide a login/,
      );
    });
    write(await create());
    await eventually(async () => assert.equal((await system.api.get('/readyz')).status, 200));
    assert.equal((await system.api.get('/api/v1/jobs/queues')).status, 200);
  });

  test('a password in the file that DATABASE_PASSWORD_FILE names may change', async (t) => {
    const { username, password } = await create();
    const folder = mkdtempSync(join(tmpdir(), 'rotating-password-'));
    const file = join(folder, 'db-password');
    writeFileSync(file, `${password}\n`);
    const url = new URL(database.url);
    url.username = username;
    url.password = '';
    const system = await startTestSystem({
      database,
      env: { DATABASE_URL: url.href, DATABASE_MIGRATE: 'false', DATABASE_PASSWORD_FILE: file },
    });
    t.after(async () => {
      await system.stop();
      rmSync(folder, { recursive: true });
    });
    await owner.query(`ALTER ROLE "${username}" PASSWORD 'changed'`);
    writeFileSync(join(folder, 'new'), 'changed\n');
    renameSync(join(folder, 'new'), file);
    await eventually(async () => assert.equal(await reloads(system, 'reloaded'), 1));
    // No session of the previous password is left to hide that the new one does not work.
    await owner.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1', [
      username,
    ]);
    await eventually(async () => assert.equal((await system.api.get('/readyz')).status, 200));
    assert.equal((await system.api.get('/api/v1/jobs/queues')).status, 200);
  });
});

async function reloads({ api }: TestSystem, outcome: string): Promise<number> {
  const { text } = await api.get('/metrics');
  const line = text
    .split('\n')
    .find((one) => one.startsWith('secrets_reload_total') && one.includes(`outcome="${outcome}"`));
  assert.ok(line, text);
  return Number(line.split(' ').at(-1));
}

/** Uses every route and waits for what the workers make of it, again and again; notes every answer from 500. */
function startLoad({ api, broker }: TestSystem) {
  assert.ok(broker);
  const failures: string[] = [];
  let rounds = 0;
  let reads = 0;
  const stopping = new AbortController();
  const { signal } = stopping;
  const noted = async <A extends { status: number; text: string }>(
    path: string,
    send: Promise<A>,
  ): Promise<A> => {
    const answer = await send.catch((error: unknown) => {
      failures.push(`${path}: ${String(error)}`);
      throw error;
    });
    if (answer.status >= 500) failures.push(`${path}: ${answer.status} ${answer.text}`);
    return answer;
  };
  const watched: ApiClient = {
    ...api,
    get: (path, headers) => noted(path, api.get(path, headers)),
    post: (path, body, headers) => noted(path, api.post(path, body, headers)),
    delete: (path) => noted(path, api.delete(path)),
  };
  const useEverything = async (): Promise<void> => {
    while (!signal.aborted) {
      await runHttpFlows({ api: watched, broker });
      rounds += 1;
    }
  };
  const readOften = async (): Promise<void> => {
    for (; !signal.aborted; reads += 1) await watched.get('/api/v1/jobs/queues');
  };
  const running = Promise.all([useEverything(), readOften(), readOften()]);
  running.catch((error: unknown) => failures.push(String(error)));
  return {
    /** Resolves when a round that starts from now on has ended, or something has failed. */
    async round(): Promise<void> {
      const until = rounds + 2;
      await eventually(() => assert.ok(rounds >= until || failures.length > 0), { withinMs: 60_000 });
    },
    async reads(count: number): Promise<void> {
      const until = reads + count;
      await eventually(() => assert.ok(reads >= until || failures.length > 0), { withinMs: 60_000 });
    },
    async stop(): Promise<readonly string[]> {
      stopping.abort();
      await running.catch(() => {});
      return failures;
    },
  };
}
