import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { createDatabase, type ServerDatabase } from './database.ts';
import type { Login, LoginSource } from './login.ts';
import { Sql, sql } from './sql.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase('empty');
});
after(() => database.drop());

const owner = (statement: string): Promise<unknown> => database.db.query(new Sql([statement], []));
let login: Login;
let outcomes: string[];
let db: ServerDatabase;

/** What the file holds; no event tells of a change, and the first look of the timer is 10 s away. */
let held: () => Promise<Login>;

beforeEach(async () => {
  login = { user: `role_${randomBytes(5).toString('hex')}`, password: 'first' };
  await owner(`CREATE ROLE ${login.user} LOGIN PASSWORD '${login.password}'`);
  held = () => Promise.resolve(login);
  outcomes = [];
  const { hostname: host, port, pathname } = new URL(database.url);
  const source: LoginSource = { initial: login, files: ['/nonexistent/login'], read: () => held() };
  db = createDatabase({
    target: { host, port: Number(port), database: pathname.slice(1), login: source, ssl: false },
    maxConnections: 3,
    maxLifetimeMs: 600_000,
    applicationName: 'redrive-test',
    onReload: (outcome) => outcomes.push(outcome),
  });
});
afterEach(async () => {
  await db.end();
  await owner(`DROP ROLE ${login.user}`);
});

async function changePassword(password: string): Promise<void> {
  await owner(`ALTER ROLE ${login.user} PASSWORD '${password}'`);
  held = () => Promise.resolve({ user: login.user, password });
}

test('a rejected connection reads the file again at once, and is made again with the new password', async () => {
  await changePassword('second');
  const answers = await Promise.all([
    db.query(sql`SELECT 1 AS one`),
    db.transaction((tx) => tx.query(sql`SELECT 1 AS one`)),
  ]);
  assert.deepEqual(answers, [[{ one: 1 }], [{ one: 1 }]]);
  assert.deepEqual(outcomes, ['reloaded']);
});

test('a rejected connection stays rejected while the file holds what it held', async () => {
  await owner(`ALTER ROLE ${login.user} PASSWORD 'elsewhere'`);
  await assert.rejects(db.query(sql`SELECT 1`), /password authentication failed/);
  assert.deepEqual([outcomes, db.loginTrouble()], [[], null]);
});

test('a login that the server refuses is tried once, however many connections are rejected meanwhile', async () => {
  await owner(`ALTER ROLE ${login.user} PASSWORD 'elsewhere'`);
  held = () => Promise.resolve({ user: login.user, password: 'wrong' });
  for (let i = 0; i < 3; i += 1) await assert.rejects(db.query(sql`SELECT 1`));
  assert.deepEqual(outcomes, ['refused']);
  assert.match(db.loginTrouble() ?? '', /refuses the login from \/nonexistent\/login/);
  assert.doesNotMatch(db.loginTrouble() ?? '', /wrong/);
});

test('a file that cannot be read is reported', async () => {
  await owner(`ALTER ROLE ${login.user} PASSWORD 'elsewhere'`);
  held = () => Promise.reject(new Error('no such file'));
  await assert.rejects(db.query(sql`SELECT 1`), /password authentication failed/);
  assert.deepEqual(outcomes, ['unreadable']);
  assert.match(db.loginTrouble() ?? '', /cannot read \/nonexistent\/login: no such file/);
});

test('idle connections of the previous login end at once, busy ones after their transaction', async (t) => {
  const pidOf = sql`SELECT pg_backend_pid() AS pid, pg_sleep(0.05)::text`;
  const pids = async (): Promise<readonly number[]> => {
    const rows = await database.db.query<{ pid: number }>(sql`
      SELECT pid FROM pg_stat_activity WHERE usename = ${login.user}`);
    return rows.map(({ pid }) => pid);
  };
  const both = await Promise.all([db.query<{ pid: number }>(pidOf), db.query<{ pid: number }>(pidOf)]);
  const idle = both.map(([row]) => row?.pid ?? 0);
  const busy = await db.transaction(async (tx) => {
    const [row] = await tx.query<{ pid: number }>(pidOf);
    const own = row?.pid ?? 0;
    await changePassword('second');
    const listener = await db.connect(() => {});
    t.after(() => listener.close());
    await eventually(async () => {
      const now = await pids();
      assert.deepEqual(
        [now.includes(own), idle.some((pid) => pid !== own && now.includes(pid))],
        [true, false],
      );
    });
    return own;
  });
  await eventually(async () => assert.ok(!(await pids()).includes(busy)));
});

test('no notification is lost while the listening connection is made anew', async (t) => {
  const heard = new Set<string>();
  let ended = false;
  const listener = await db.connect(() => (ended = true));
  t.after(() => listener.close());
  await listener.listen('numbers', (payload) => heard.add(payload));
  const listening = (): Promise<readonly { pid: number }[]> =>
    database.db.query(sql`
      SELECT pid FROM pg_stat_activity WHERE usename = ${login.user} AND query LIKE 'LISTEN%'`);
  const [before] = await listening();
  const renewed = new AbortController();
  let sent = 0;
  const sending = (async () => {
    for (; !renewed.signal.aborted; sent += 1)
      await database.db.query(sql`SELECT pg_notify('numbers', ${String(sent)})`);
  })();
  await changePassword('second');
  await db.query(sql`SELECT 1`);
  await eventually(async () => {
    const now = await listening();
    assert.equal(now.length, 1);
    assert.notEqual(now[0]?.pid, before?.pid);
  });
  renewed.abort();
  await sending;
  await eventually(() => assert.equal(heard.size, sent));
  assert.equal(ended, false);
});
