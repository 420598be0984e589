import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../../tests/support/database.ts';
import { leaseRedrive, planItems, runDeps } from '../../../../tests/support/redrive-runs.ts';
import { storeRecords, type StoredRecord } from '../../../../tests/support/stored-message.ts';
import { createTestWorker } from '../../../../tests/support/worker.ts';
import type { OutgoingRecord, PublishResult } from '../../../platform/broker/port.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import { decideMessages } from '../../decide/decide-messages.ts';
import { runDecision } from './run-decision.ts';
import { runRedrive } from './run-redrive.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
afterEach(() =>
  database.db.query(
    sql`TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items, platform.notify_events`,
  ),
);

const topic = 'orders.v1';
const leased = new AbortController().signal;

const store = (records: readonly StoredRecord[]): Promise<void> => storeRecords(database.db, topic, records);
const numbered = (count: number): readonly StoredRecord[] =>
  Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: `${i}` }));

const items = async (): Promise<readonly (readonly [string | null, string | null])[]> => {
  const rows = await database.db.query<{ outcome: string | null; reason: string | null }>(sql`
    SELECT outcome, reason FROM dlq.redrive_items ORDER BY position`);
  return rows.map(({ outcome, reason }) => [outcome, reason]);
};

/** Acknowledges everything, and keeps the batches. */
function acknowledging() {
  const batches: string[][] = [];
  const publish = async (records: readonly OutgoingRecord[]): Promise<readonly PublishResult[]> => {
    batches.push(records.map(({ value }) => String(value)));
    return records.map((_, i) => ({ result: 'acked', partition: 0, offset: BigInt(i) }));
  };
  return { batches, publish };
}

test('a lease that is always too short for a publish ends as skipped messages, and uses no attempt', async () => {
  await store(numbered(6));
  const redrive = await leaseRedrive(database.db);
  await planItems(database.db, redrive);
  const { batches, publish } = acknowledging();
  await runRedrive(runDeps(database.db, publish, { leaseMs: 1000, publishTimeoutMs: 2000 }), redrive, leased);
  assert.deepEqual(batches, []);
  for (const [outcome, reason] of await items())
    assert.deepEqual([outcome, reason], ['skipped', 'too little time left on the lease to publish']);
  const rows = await database.db.query(sql`
    SELECT DISTINCT status, retry_count FROM dlq.dlq_messages`);
  assert.deepEqual(rows, [{ status: 'PENDING', retry_count: 0 }]);
});

/** The bytes of one message cannot be read. */
function withUnreadable(db: Database, id: string): Database {
  const isLoad = ({ text }: Sql): boolean => text.includes('AS value, t.headers');
  return {
    ...db,
    async query(statement) {
      const asked = statement.values.find((value): value is readonly string[] => Array.isArray(value));
      if (isLoad(statement) && asked?.includes(id) === true) throw new Error('invalid page in block 7');
      return db.query(statement);
    },
  };
}

test('one message whose bytes cannot be read is given up, and those around it are sent', async () => {
  const large = (key: string): StoredRecord => ({ key, value: randomBytes(20_000) });
  await store(['a', 'b', 'c', 'd', 'c', 'e'].map(large));
  const redrive = await leaseRedrive(database.db);
  await planItems(database.db, redrive);
  const [third] = await database.db.query<{ id: string }>(sql`
    SELECT message_id AS id FROM dlq.redrive_items WHERE position = 3`);
  const { batches, publish } = acknowledging();
  const worker = createTestWorker(withUnreadable(database.db, third?.id ?? ''));
  await runRedrive(runDeps(database.db, publish, { worker }), redrive, leased);
  assert.deepEqual(await items(), [
    ['published', null],
    ['published', null],
    ['skipped', 'failed to load the message: invalid page in block 7'],
    ['published', null],
    ['skipped', 'behind an item with the same key that was not published'],
    ['published', null],
  ]);
  assert.equal(batches.flat().length, 4);
});

test('a target that accepts nothing for too long stops the redrive, which uses no attempt', async () => {
  await store(numbered(3));
  const redrive = await leaseRedrive(database.db);
  await planItems(database.db, redrive);
  const down: PublishResult = {
    result: 'failed',
    fault: 'cluster',
    retriable: true,
    code: 'UNAVAILABLE',
    message: 'no leader',
  };
  const publish = async (records: readonly OutgoingRecord[]): Promise<readonly PublishResult[]> =>
    records.map(() => down);
  await runRedrive(runDeps(database.db, publish, { outageMs: 300 }), redrive, leased);
  const [row] = await database.db.query(sql`SELECT state, state_reason FROM dlq.redrives`);
  assert.deepEqual(row, {
    state: 'stopped',
    state_reason: 'orders.v1 accepts no messages: UNAVAILABLE: no leader',
  });
  assert.deepEqual(await items(), [
    [null, null],
    [null, null],
    [null, null],
  ]);
  const rows = await database.db.query(sql`SELECT DISTINCT status, retry_count FROM dlq.dlq_messages`);
  assert.deepEqual(rows, [{ status: 'PENDING', retry_count: 0 }]);
  const told = await database.db.query(sql`SELECT kind FROM platform.notify_events`);
  assert.deepEqual(told, [{ kind: 'redrive_stopped' }]);
});

test('a message that must run alone is sent alone, in its place', async () => {
  await store(numbered(5));
  const redrive = await leaseRedrive(database.db);
  await planItems(database.db, redrive);
  await database.db.query(sql`
    UPDATE dlq.dlq_messages SET lease_lost = true, retry_count = 2
    WHERE id = (SELECT message_id FROM dlq.redrive_items WHERE position = 3)`);
  const { batches, publish } = acknowledging();
  await runRedrive(runDeps(database.db, publish), redrive, leased);
  assert.deepEqual(batches, [['0', '1'], ['2'], ['3', '4']]);
});

test('the statement that claims messages reads no items: right after a plan it would read all of them', async () => {
  await store(numbered(3));
  const redrive = await leaseRedrive(database.db, { options: { reopen: true } });
  await planItems(database.db, redrive);
  const { publish } = acknowledging();
  const claims: string[] = [];
  const db: Database = {
    ...database.db,
    transaction: (work, options) =>
      database.db.transaction(
        (tx) =>
          work({
            query(statement) {
              if (/'retry_started'|'reopened'/.test(statement.text)) claims.push(statement.text);
              return tx.query(statement);
            },
          }),
        options,
      ),
  };
  await runRedrive(runDeps(db, publish), redrive, leased);
  assert.ok(claims.length >= 2);
  for (const claim of claims) assert.doesNotMatch(claim, /redrive_items/);
});

test('a bulk decision gives up a message that stays locked', async () => {
  await store(numbered(2));
  const redrive = await leaseRedrive(database.db, { kind: 'dead' });
  await planItems(database.db, redrive);
  await database.db.transaction(async (tx) => {
    await tx.query(sql`
      SELECT 1 FROM dlq.dlq_messages
      WHERE id = (SELECT message_id FROM dlq.redrive_items WHERE position = 1) FOR UPDATE`);
    const { clock } = createTestWorker(database.db);
    const deps = { db: database.db, clock, decide: decideMessages, restMs: 1 };
    await runDecision(deps, { ...redrive, kind: 'dead' }, leased);
  });
  assert.deepEqual(await items(), [
    ['skipped', 'locked by another transaction'],
    ['applied', null],
  ]);
});
