import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  createTestDatabase,
  migrationSources,
  type TestDatabase,
} from '../../../../tests/support/database.ts';
import { migrateUp, readMigrations } from '../migrate.ts';
import { Sql, sql } from '../sql.ts';
import { lockModes, type LockMode } from './locks-of.ts';
import { planMigrations } from './plan-migrations.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase('empty')));
after(() => database.drop());

const keyOf = ({ slice, number }: Readonly<{ slice: string; number: number }>): string =>
  `${slice}/${number}`;

test('every migration locks what its plan says, no more and no less, unless it calls a function', async () => {
  const { db } = database;
  // Makes the history.
  await migrateUp(db, []);
  const all = await readMigrations(migrationSources);
  const wrong: string[] = [];
  for (const migration of all) {
    const planned = (await planMigrations(db, migrationSources)).find(
      (one) => keyOf(one) === keyOf(migration),
    );
    assert.ok(planned, keyOf(migration));
    await db.transaction(async (tx) => {
      const existing = await tx.query<{ oid: string }>(
        sql`SELECT oid::text FROM pg_class WHERE relkind IN ('r', 'p')`,
      );
      await tx.query(new Sql([migration.up], []));
      const held = await tx.query<{ name: string; mode: string }>(sql`
        SELECT DISTINCT COALESCE(pg_partition_root(l.relation), l.relation)::regclass::text AS name,
               upper(regexp_replace(replace(l.mode, 'Lock', ''), '(?<=[a-z])(?=[A-Z])', ' ', 'g')) AS mode
        FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE l.pid = pg_backend_pid() AND c.relkind IN ('r', 'p') AND n.nspname <> 'pg_catalog'
          AND n.nspname <> 'pg_toast' AND l.relation::text = ANY (${existing.map(({ oid }) => oid)}::text[])`);
      const actual = new Map<string, LockMode>();
      for (const { name, mode } of held) {
        const rank = lockModes.indexOf(mode as LockMode);
        if (rank > lockModes.indexOf(actual.get(name) ?? ('' as LockMode)))
          actual.set(name, mode as LockMode);
      }
      const expected = new Map(planned.locks.map(({ table, mode }) => [table, mode]));
      for (const table of new Set([...actual.keys(), ...expected.keys()]))
        if (actual.get(table) !== expected.get(table) && planned.calls.length === 0)
          wrong.push(
            `${keyOf(migration)} ${table}: takes ${actual.get(table)}, plan says ${expected.get(table)}`,
          );
      const { slice, number, name, checksum } = migration;
      await tx.query(sql`
        INSERT INTO platform.migrations (slice, number, name, checksum)
        VALUES (${slice}, ${number}, ${name}, ${checksum})`);
    });
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(await planMigrations(db, migrationSources), []);
  assert.deepEqual(await migrateUp(db, migrationSources), []);
});

test('the estimate follows the size of the tables', async () => {
  const { db } = database;
  await db.query(sql`CREATE TABLE public.things (id BIGINT, note TEXT)`);
  const source = {
    slice: 'things',
    directory: new URL('../../../../tests/support/planned-migrations/', import.meta.url),
  };
  const planned = async () => (await planMigrations(db, [source]))[0];
  const lock = {
    table: 'public.things',
    mode: 'ACCESS EXCLUSIVE',
    blocks: 'reads and writes',
    work: ['scan', 'index'],
  };
  const { name, locks, calls, seconds } = (await planned()) ?? assert.fail();
  assert.deepEqual([name, calls], ['check_things', ['public.count_things']]);
  assert.deepEqual(locks, [{ ...lock, rows: null, bytes: 8192 }]);
  assert.ok(seconds < 0.1, String(seconds));
  await db.query(
    sql`INSERT INTO public.things SELECT n, repeat('x', 100) FROM generate_series(1, 20000) AS n`,
  );
  await db.query(sql`ANALYZE public.things`);
  const grown = (await planned()) ?? assert.fail();
  assert.deepEqual(grown.locks[0]?.rows, 20_000);
  assert.ok(grown.seconds > seconds * 3, String(grown.seconds));
});
