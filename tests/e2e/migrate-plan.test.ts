import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { PlannedMigration } from '../../src/platform/postgres/migration-plan/plan-migrations.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { databaseEnv } from '../support/pooler.ts';
import { runRedrive } from '../support/redrive-process.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase('migrated')));
after(() => database.drop());

const plan = (...args: readonly string[]) =>
  runRedrive(['migrate', 'plan', ...args], { ...databaseEnv(database.url) });

test('migrate plan lists what is pending and what it locks, and changes nothing', async () => {
  const done = await plan();
  assert.deepEqual([done.code, done.out], [0, 'nothing to apply\n']);
  await database.db.query(sql`DELETE FROM platform.migrations WHERE slice = 'saga' AND number = 18`);
  const text = await plan();
  assert.equal(text.code, 0);
  assert.match(text.out, /^saga\/018 \w+ +saga\.saga_states +ACCESS EXCLUSIVE +reads and writes/m);
  assert.match(text.err, /^1 pending, about < 1 s in all/m);
  const json = await plan('--json');
  const planned = JSON.parse(json.out) as readonly PlannedMigration[];
  assert.deepEqual([planned.length, planned[0]?.slice, planned[0]?.number], [1, 'saga', 18]);
  assert.ok(planned[0]?.locks.some(({ table }) => table === 'saga.saga_states_archive'));
  const again = await plan('--json');
  assert.equal(again.out, json.out);
});
