import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { testAct } from '../../tests/support/acts.ts';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { recordAct } from '../platform/audit/record-act.ts';
import { Sql, sql } from '../platform/postgres/sql.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const act = testAct('dlq:messages:delete', 'cleaned up');
const plain = (text: string): Sql => new Sql([text], []);
const resourceOf = async (db: Queryable, resource: string) =>
  db.query<{ seq: bigint; detail: unknown }>(sql`
    SELECT seq, detail FROM audit.events WHERE resource = ${resource} ORDER BY seq`);

test('an act and its change are committed together, or neither is', async () => {
  const { db } = database;
  const change = (tx: Queryable) => recordAct(tx, act, { resource: 'test/items/1', detail: { n: 1 } });
  await assert.rejects(
    db.transaction(async (tx) => {
      await change(tx);
      throw new Error('the change failed');
    }),
    /the change failed/,
  );
  assert.deepEqual(await resourceOf(db, 'test/items/1'), []);
  await db.transaction(change);
  assert.equal((await resourceOf(db, 'test/items/1')).length, 1);
});

test('number, time and how long a row is kept are not chosen by who adds it', async () => {
  const { db } = database;
  const add = (columns: string, values: string) =>
    db.query(
      plain(`
        INSERT INTO audit.events (actor_type, actor_id, actor_name, action, outcome, resource ${columns})
        VALUES ('cli', 'x', 'x', 'saga:sagas:repair', 'success', 'test/forged' ${values})`),
    );
  await assert.rejects(add(', kept', ", 'usual'"), /how long an audit event is kept cannot be chosen/);
  await assert.rejects(
    add(', kept, at', ", 'long', now() + interval '40 days'"),
    /cannot be chosen|moving row|no partition/,
  );
  await add(', kept, at, seq', ", 'long', date_trunc('month', now()), -5");
  const [row] = await db.query<{ isNow: boolean; isNext: boolean }>(sql`
    SELECT at > now() - interval '1 minute' AS "isNow", seq > 0 AS "isNext"
    FROM audit.events WHERE resource = 'test/forged'`);
  assert.deepEqual(row, { isNow: true, isNext: true });
});

test('no row is changed, deleted or truncated, neither through the table nor through its partitions', async () => {
  const { db } = database;
  await recordAct(db, act, { resource: 'test/items/2' });
  const [month] = await db.query<{ name: string }>(sql`
    SELECT tableoid::regclass::text AS name FROM audit.events WHERE resource = 'test/items/2'`);
  for (const table of ['audit.events', 'audit.events_usual', month?.name ?? ''])
    for (const statement of [`UPDATE ${table} SET reason = 'x'`, `DELETE FROM ${table}`, `TRUNCATE ${table}`])
      await assert.rejects(db.query(plain(statement)), /append-only/, statement);
  for (const table of ['audit.seals', 'audit.dropped_months'])
    for (const statement of [`DELETE FROM ${table}`, `TRUNCATE ${table}`])
      await assert.rejects(db.query(plain(statement)), /append-only/, statement);
  assert.equal((await resourceOf(db, 'test/items/2')).length, 1);
});

test('a detail that no hash can be made of is refused', async () => {
  const record = (detail: string) =>
    database.db.query(sql`SELECT audit.record('x:y:z', 'test/items/3', p_detail => ${detail}::jsonb)`);
  for (const detail of ['{"n": 1e400}', '{"a": [{"n": 9007199254740993}]}', '[1]'])
    await assert.rejects(record(detail), /violates check constraint/, detail);
  await record('{"n": 9007199254740991}');
});

test('SQL records under its login, and never as a person', async () => {
  const { db } = database;
  await db.query(sql`SELECT audit.record('dlq:messages:archive', 'test/items/4', 'by hand')`);
  const [row] = await db.query<{ type: string; isLogin: boolean }>(sql`
    SELECT actor_type AS type, actor_id = 'db:' || session_user AS "isLogin"
    FROM audit.events WHERE resource = 'test/items/4'`);
  assert.deepEqual(row, { type: 'cli', isLogin: true });
  await assert.rejects(
    db.query(sql`SELECT audit.record('a:b:c', 'x', p_actor_type => 'user')`),
    /must be cli, sdk or system/,
  );
});
