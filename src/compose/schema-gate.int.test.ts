import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { createTestDatabase, migrationSources, type TestDatabase } from '../../tests/support/database.ts';
import { loggerInto, type LoggedLine } from '../../tests/support/logged-lines.ts';
import type { Database } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';
import { createSchemaGate, type SchemaGate } from './schema-gate.ts';

const signal = new AbortController().signal;

async function open(t: TestContext, kind: 'migrated' | 'empty' = 'migrated'): Promise<TestDatabase> {
  const database = await createTestDatabase(kind);
  t.after(() => database.drop());
  return database;
}

function gateOf(db: Database, lines: LoggedLine[] = []): Promise<SchemaGate> {
  const onStatus = (): void => {};
  const options = { sources: migrationSources, migrate: false, version: '1.2.3', onStatus };
  return createSchemaGate(db, { ...options, logger: loggerInto(lines) });
}

test('a schema of a newer version is accepted', async (t) => {
  const { db } = await open(t);
  await db.query(sql`
    INSERT INTO platform.migrations (slice, number, name, checksum) VALUES ('jobs', 999, 'add_more', 'x')`);
  const gate = await gateOf(db);
  assert.equal(gate.outdated(), null);
  assert.deepEqual(await gate.check.check(signal), { status: 'healthy' });
});

test('a migration that was changed ends the start: waiting would not help', async (t) => {
  const { db } = await open(t);
  await db.query(sql`UPDATE platform.migrations SET checksum = 'x' WHERE slice = 'jobs' AND number = 2`);
  await assert.rejects(gateOf(db), { code: 'SYS_PLATFORM_MIGRATION_CHANGED', message: /jobs\/2 / });
});

test('a look that fails is logged once, shown in readiness, and repeated', async (t) => {
  const { db } = await open(t, 'empty');
  const { db: migrated } = await open(t);
  let failures = 0;
  let current: Pick<Database, 'query'> = db;
  const lines: LoggedLine[] = [];
  const gate = await gateOf({ ...db, query: (statement) => current.query(statement) }, lines);
  const seen: unknown[] = [];
  current = {
    async query() {
      failures += 1;
      if (failures === 2) {
        seen.push((await gate.check.check(signal)).message);
        current = migrated;
      }
      throw new Error('connection refused');
    },
  };
  assert.equal(await gate.wait(signal), true);
  assert.match(
    String(seen[0]),
    /run `redrive migrate up`; failed to read the applied migrations: connection refused/,
  );
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    ['failed to read the applied migrations'],
  );
  assert.match(gate.outdated()?.message ?? '', /Redrive 1\.2\.3 needs platform \d+ \(has none\)/);
  gate.open();
  assert.equal(gate.outdated(), null);
});

test('a stop ends the wait, also while a look hangs', async (t) => {
  const { db } = await open(t, 'empty');
  const stop = new AbortController();
  let current: Pick<Database, 'query'> = db;
  const gate = await gateOf({ ...db, query: (statement) => current.query(statement) });
  current = {
    query() {
      setImmediate(() => stop.abort());
      return new Promise(() => {});
    },
  };
  assert.equal(await gate.wait(stop.signal), false);
});
