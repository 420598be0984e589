import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { createTestDatabase, migrationSources, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { migrateDown, migrateUp } from '../../platform/postgres/migrate.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';
import { type Counts } from '../../platform/work/retention-tasks.ts';
import { TableBusyError } from '../../platform/work/retention.ts';
import { auditPartitions } from './retention.ts';

const dayMs = 86_400_000;

let database: TestDatabase;
let db: Database;
beforeEach(async () => {
  database = await createTestDatabase();
  ({ db } = database);
});
afterEach(() => database.drop());

function maintainAudit(retentionDays = 400): Promise<Counts> {
  return auditPartitions(db, { auditRetentionMs: retentionDays * dayMs }).run(new AbortController().signal);
}

const nothingToDo: Counts = { made: 0, adopted: 0, dropped: 0 };

/** The start of the month this many months from now. */
function month(offset: number): Date {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset));
}

function nameOf(offset: number): string {
  const [year, monthOfYear] = month(offset).toISOString().split('-');
  return `outbox_audit_${year}_${monthOfYear}`;
}

function spanOf(first: number, last: number): string {
  return `${nameOf(first)}${nameOf(last).replace('outbox_audit', '_to')}`;
}

type Partition = Readonly<{ name: string; begins_at: Date; ends_at: Date }>;

async function partitions(): Promise<readonly Partition[]> {
  return db.query<Partition>(
    sql`SELECT name, begins_at, ends_at FROM outbox.audit_partitions() ORDER BY begins_at`,
  );
}

async function names(): Promise<readonly string[]> {
  return (await partitions()).map(({ name }) => name);
}

/** Only tables of the test itself are named this way. */
async function dropMonths(...offsets: readonly number[]): Promise<void> {
  for (const offset of offsets) await db.query(new Sql([`DROP TABLE outbox.${nameOf(offset)}`], []));
}

async function write(on: Queryable, at: Date | null = null, outboxId = 1): Promise<void> {
  await on.query(sql`
    INSERT INTO outbox.outbox_audit (outbox_id, status_to, retry_count, idempotency_key, actor, at)
    VALUES (${outboxId}, 'queued', 0, 'key-1', 'test', COALESCE(${at}::timestamptz, clock_timestamp()))`);
}

async function rows(): Promise<readonly unknown[]> {
  return db.query(sql`SELECT * FROM outbox.outbox_audit ORDER BY id`);
}

async function inDefault(): Promise<number> {
  return (await db.query(sql`SELECT 1 FROM outbox.outbox_audit_default`)).length;
}

/** For a lock. */
async function somebodyWaits(): Promise<void> {
  await eventually(async () => {
    const waiting = await db.query(sql`
      SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`);
    assert.equal(waiting.length, 1);
  });
}

test('this month and the next two exist from the start', async () => {
  assert.deepEqual(
    await partitions(),
    [0, 1, 2].map((n) => ({ name: nameOf(n), begins_at: month(n), ends_at: month(n + 1) })),
  );
  await write(db);
  assert.equal(await inDefault(), 0);
  assert.deepEqual(await maintainAudit(), nothingToDo);
});

test('missing months are created once, however many replicas find them missing', async () => {
  await dropMonths(0, 1, 2);
  const rounds = await Promise.allSettled(Array.from({ length: 4 }, () => maintainAudit()));
  for (const round of rounds)
    if (round.status === 'rejected') assert.ok(round.reason instanceof TableBusyError);
  const made = rounds.map((round) => (round.status === 'fulfilled' ? (round.value['made'] ?? 0) : 0));
  const { made: last = 0 } = await maintainAudit();
  assert.equal(
    made.reduce((sum, count) => sum + count, last),
    3,
  );
  assert.deepEqual(await names(), [0, 1, 2].map(nameOf));
});

test('a month that somebody else has just created is not created again', async () => {
  await dropMonths(2);
  const second = await db.transaction(async (tx) => {
    await tx.query(sql`SELECT outbox.make_audit_months()`);
    const made = db.query<{ made: number }>(sql`SELECT outbox.make_audit_months() AS made`);
    await somebodyWaits();
    return { made };
  });
  assert.deepEqual(await second.made, [{ made: 0 }]);
});

test('months are those of UTC, whatever the time zone of the session', async () => {
  await dropMonths(0, 1, 2);
  await write(db, month(-1));
  await db.transaction(async (tx) => {
    await tx.query(sql`SET LOCAL timezone = 'America/New_York'`);
    await tx.query(sql`SET LOCAL datestyle = 'SQL, DMY'`);
    await tx.query(sql`SELECT outbox.adopt_default_audit(), outbox.make_audit_months()`);
  });
  assert.deepEqual(
    await partitions(),
    [-1, 0, 1, 2].map((n) => ({ name: nameOf(n), begins_at: month(n), ends_at: month(n + 1) })),
  );
});

test('rows in DEFAULT get a partition of their month, and none is lost or changed', async () => {
  await dropMonths(0, 1, 2);
  for (const offset of [-4, -4, -2, 0]) await write(db, month(offset));
  await write(db);
  const before = await rows();
  assert.equal(await inDefault(), 5);
  assert.deepEqual(await maintainAudit(), { made: 2, adopted: 1, dropped: 0 });
  assert.deepEqual(await rows(), before);
  assert.equal(await inDefault(), 0);
  assert.deepEqual(await names(), [spanOf(-4, 0), nameOf(1), nameOf(2)]);
  await write(db);
  assert.equal(await inDefault(), 0);
  assert.deepEqual(await maintainAudit(), nothingToDo);
});

test('a row that commits while DEFAULT is emptied is moved as well', async () => {
  await write(db, month(-3));
  const adopting = await db.transaction(async (writer) => {
    await write(writer, month(-1));
    const adopted = db.query(sql`SELECT outbox.adopt_default_audit()`);
    await somebodyWaits();
    return { adopted };
  });
  await adopting.adopted;
  assert.equal(await inDefault(), 0);
  assert.deepEqual(await names(), [spanOf(-3, -1), ...[0, 1, 2].map(nameOf)]);
});

test('months that are not adjacent become separate partitions, and rows of later months stay in DEFAULT until then', async () => {
  for (const offset of [-30, -29, -2, 30]) await write(db, month(offset));
  const before = await rows();
  assert.deepEqual(await maintainAudit(1e6), { made: 0, adopted: 1, dropped: 0 });
  await dropMonths(1);
  for (const offset of [1, -1]) await write(db, month(offset));
  assert.deepEqual(await maintainAudit(1e6), { made: 0, adopted: 2, dropped: 0 });
  assert.equal((await rows()).length, before.length + 2);
  assert.deepEqual(await names(), [spanOf(-30, -2), ...[-1, 0, 1, 2].map(nameOf)]);
  assert.equal(await inDefault(), 1);
});

test('no row can be changed or deleted, through the table or through a partition', async () => {
  for (const offset of [-2, 0, 30]) await write(db, month(offset));
  await maintainAudit();
  const parts = [...(await names()), 'outbox_audit_default', 'outbox_audit'];
  for (const part of parts) {
    const table = new Sql([`outbox.${part}`], []);
    if ((await db.query(sql`SELECT 1 FROM ${table}`)).length === 0) continue;
    await assert.rejects(db.query(sql`UPDATE ${table} SET actor = 'x'`), /append-only/, part);
    await assert.rejects(db.query(sql`DELETE FROM ${table}`), /append-only/, part);
  }
  assert.equal((await rows()).length, 3);
});

test('a month is dropped after the audit retention, also one whose rows were in DEFAULT', async () => {
  const now = Date.now();
  for (const offset of [-20, -15, -3]) await write(db, month(offset));
  await maintainAudit(1e6);
  await write(db, month(-40));
  const keptDays = (now - month(-14).getTime()) / dayMs;
  assert.deepEqual(await maintainAudit(keptDays + 1), { made: 0, adopted: 1, dropped: 1 });
  assert.deepEqual(await names(), [spanOf(-20, -3), ...[0, 1, 2].map(nameOf)]);
  const youngDays = (now - month(-2).getTime()) / dayMs;
  assert.deepEqual(await maintainAudit(youngDays - 1), { made: 0, adopted: 0, dropped: 1 });
  assert.deepEqual(await maintainAudit(0), nothingToDo, 'this month never goes');
  assert.deepEqual(await rows(), []);
});

test('a row that is written while its month is created is not refused', async () => {
  await dropMonths(0);
  const writing = await db.transaction(async (tx) => {
    await tx.query(sql`SELECT outbox.make_audit_months()`);
    const written = write(db);
    await somebodyWaits();
    return { written };
  });
  await writing.written;
  assert.equal(await inDefault(), 0);
});

test('a later month is created during writes, and blocks no writer', async () => {
  await dropMonths(2);
  await db.transaction(async (writer) => {
    await write(writer);
    await db.transaction(async (maker) => {
      await maker.query(sql`SET LOCAL lock_timeout = '1s'`);
      await maker.query(sql`SELECT outbox.make_audit_months()`);
      await write(writer);
      await write(db);
    });
  });
  assert.deepEqual(await names(), [0, 1, 2].map(nameOf));
  assert.equal((await rows()).length, 3);
});

test('while the audit is locked for long, maintenance gives up soon and succeeds later', async () => {
  await write(db, month(-3));
  await db.transaction(async (reader) => {
    await reader.query(sql`SELECT count(*) FROM outbox.outbox_audit`);
    await assert.rejects(maintainAudit(), TableBusyError);
    await write(db);
    await write(reader);
  });
  assert.deepEqual(await maintainAudit(), { made: 0, adopted: 1, dropped: 0 });
  assert.equal((await rows()).length, 3);
});

test('writes and reads succeed while partitions are created and dropped', async () => {
  const stopping = new AbortController();
  const written: number[] = [];
  const writing = [1, 2, 3].map(async (outboxId) => {
    while (!stopping.signal.aborted) {
      await db.transaction(async (tx) => {
        await write(tx, null, outboxId);
        await tx.query(sql`SELECT count(*) FROM outbox.outbox_audit WHERE outbox_id = ${outboxId}`);
        await write(tx, null, outboxId);
      });
      written.push(outboxId, outboxId);
    }
  });
  for (let round = 0; round < 15; round += 1) {
    // A row from long ago is adopted and dropped again, a month ahead is made.
    await write(db, month(-20), 0);
    await dropMonths(2);
    await eventually(() => maintainAudit());
    assert.deepEqual(await names(), [0, 1, 2].map(nameOf));
  }
  stopping.abort();
  await Promise.all(writing);
  assert.equal((await rows()).length, written.length);
  assert.ok(written.length > 30);
});

test('rolling back the migration keeps every row of the audit', async () => {
  for (const offset of [-3, 0, 1]) await write(db, month(offset));
  await maintainAudit();
  const before = await rows();
  await migrateDown(db, migrationSources, { slice: 'outbox', to: 3 });
  assert.deepEqual(await rows(), before);
  await migrateUp(db, migrationSources);
  assert.deepEqual(await rows(), before);
  assert.deepEqual(await names(), [spanOf(-3, 1), nameOf(2)]);
  assert.equal(await inDefault(), 0);
});
