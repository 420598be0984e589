import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { eventually } from '../../../tests/support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { claimAll, outcomesOf, settleAll, startRedrive } from '../../../tests/support/running-redrive.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { ReturnedAttempt } from '../domain/arrivals.ts';
import type { Canary } from '../domain/canary.ts';
import { undecodable, type DeadLetter } from '../domain/dead-letter.ts';
import { finishRedrive } from '../redrive/planned/end-redrive.ts';
import type { LeasedRedrive } from '../redrive/planned/redrives-table.ts';
import { markReturned } from './mark-returned.ts';
import { matchWatched } from './match-watched.ts';

/** What ingest does with dead letters that redrives have published. */

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
afterEach(() =>
  database.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items`),
);

/** Everything is sent in the last stage. */
const canary: Canary = { stages: [1], watch_seconds: 60, stop_percent: 10 };

async function sendAll(
  keys: readonly string[],
  sends: Readonly<{ isWatched: boolean }>,
): Promise<LeasedRedrive> {
  const { db } = database;
  const redrive = await startRedrive(db, keys, { canary: sends.isWatched ? canary : null });
  if (sends.isWatched)
    await db.query(
      sql`UPDATE dlq.redrives SET stage = 2, watched_targets = ARRAY['orders.v1'] WHERE id = ${redrive.id}`,
    );
  const claimed = await claimAll(db, redrive);
  await settleAll(db, redrive, { claimed, outcome: { end: 'published', partition: 0, offset: 7n } });
  return redrive;
}

const idsOf = async ({ id }: LeasedRedrive): Promise<readonly string[]> => {
  const rows = await database.db.query<{ id: string }>(sql`
    SELECT message_id AS id FROM dlq.redrive_items WHERE redrive_id = ${id} ORDER BY position`);
  return rows.map((row) => row.id);
};

function letterOf(
  { key, value }: Readonly<{ key: string; value: string }>,
  more: Partial<DeadLetter> = {},
): DeadLetter {
  const none = { record: { offset: 0n, timestamp: 0n, headers: [], compression: 'none' } } as unknown;
  const letter = undecodable(none as DeadLetter, 'orders.dlq', 'test');
  return {
    ...letter,
    record: { ...letter.record, key: Buffer.from(key), value: Buffer.from(value) },
    originalTopic: 'orders.v1',
    unroutable: false,
    errorMessage: 'timeout',
    ...more,
  };
}

const returnOf = (messageId: string, more: Partial<ReturnedAttempt> = {}): ReturnedAttempt => ({
  messageId,
  attempt: 1,
  topic: 'orders.v1',
  isSame: true,
  letter: letterOf({ key: 'k', value: 'v' }),
  ...more,
});

const mark = (...returned: readonly ReturnedAttempt[]): Promise<void> =>
  database.db.transaction((tx) => markReturned(tx, returned));

test('an attempt that came back marks its item, and no item of another attempt or message', async () => {
  const redrive = await sendAll(['a', 'b', 'c', 'd'], { isWatched: false });
  const [a = '', b = '', c = '', d = ''] = await idsOf(redrive);
  await mark(
    returnOf(a),
    returnOf(b, { attempt: 2 }),
    returnOf(c, { isSame: false }),
    returnOf(d, { isSame: false, topic: 'bills.v1' }),
  );
  assert.deepEqual(await outcomesOf(database.db, redrive.id), [
    'came_back',
    'published',
    'came_back',
    'published',
  ]);
  const [row] = await database.db.query(sql`
    SELECT reason, came_back_at IS NOT NULL AS at FROM dlq.redrive_items WHERE message_id = ${a}`);
  assert.deepEqual(row, { reason: 'timeout', at: true });
  await mark(returnOf(b, { attempt: null }));
  assert.equal((await outcomesOf(database.db, redrive.id))[1], 'came_back');
});

test('a message comes back while it is in flight or in doubt, and never before it was claimed or when it failed', async () => {
  const { db } = database;
  const redrive = await startRedrive(db, ['a', 'b', 'c']);
  const ids = await idsOf(redrive);
  await mark(...ids.map((id) => returnOf(id, { attempt: null })));
  assert.deepEqual(await outcomesOf(db, redrive.id), [null, null, null]);
  const claimed = await claimAll(db, redrive);
  await db.query(sql`UPDATE dlq.redrive_items SET outcome = 'unknown' WHERE position = 2`);
  await db.query(sql`UPDATE dlq.redrive_items SET outcome = 'failed' WHERE position = 3`);
  await mark(...ids.map((id) => returnOf(id)));
  assert.deepEqual(await outcomesOf(db, redrive.id), ['came_back', 'came_back', 'failed']);
  await settleAll(db, redrive, { claimed, outcome: { end: 'unknown', error: 'no answer' } });
  assert.deepEqual(await outcomesOf(db, redrive.id), ['came_back', 'came_back', 'failed']);
});

test('after the receipt the outcome stays, and the return is only noted', async () => {
  const { db } = database;
  const redrive = await sendAll(['a', 'b'], { isWatched: false });
  const ids = await idsOf(redrive);
  await mark(returnOf(ids[0] ?? ''));
  assert.equal(await finishRedrive(db, redrive), true);
  await mark(returnOf(ids[1] ?? ''));
  assert.deepEqual(await outcomesOf(db, redrive.id), ['came_back', 'published']);
  const rows = await db.query(sql`SELECT 1 FROM dlq.redrive_items WHERE came_back_at IS NOT NULL`);
  assert.equal(rows.length, 2);
});

test('a return that arrives while the receipt is being written waits for it', async () => {
  const { db } = database;
  const redrive = await sendAll(['a'], { isWatched: false });
  const [id = ''] = await idsOf(redrive);
  let marking: Promise<void> = Promise.resolve();
  const slow: Database = {
    ...db,
    transaction: (work) =>
      db.transaction(async (tx) => {
        const done = await work(tx);
        marking = mark(returnOf(id));
        await untilWaiting();
        return done;
      }),
  };
  assert.equal(await finishRedrive(slow, redrive), true);
  await marking;
  assert.deepEqual(await outcomesOf(db, redrive.id), ['published']);
});

async function untilWaiting(): Promise<void> {
  await eventually(
    async () => {
      const rows = await database.db.query(sql`
        SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`);
      assert.equal(rows.length, 1);
    },
    { withinMs: 4000 },
  );
}

const matched = async (letters: readonly DeadLetter[]): Promise<readonly (string | null)[]> =>
  (await matchWatched(database.db, letters)).map(({ lineage }) => lineage?.messageId ?? null);

test('a dead letter without our headers is recognised by its bytes, only while its topic is watched', async () => {
  const redrive = await sendAll(['a', 'b'], { isWatched: true });
  const [a = '', b = ''] = await idsOf(redrive);
  const letters = [
    letterOf({ key: 'b', value: '1' }),
    letterOf({ key: 'b', value: '0' }),
    letterOf({ key: 'a', value: '0' }, { originalTopic: 'bills.v1' }),
    letterOf({ key: 'a', value: '0' }, { originalTopic: 'unknown.dlq', unroutable: true }),
  ];
  assert.deepEqual(await matched(letters), [b, null, null, a]);
  await database.db.query(sql`UPDATE dlq.redrives SET state = 'stopped'`);
  assert.deepEqual(await matched(letters), [b, null, null, a]);
  await database.db.query(sql`UPDATE dlq.redrives SET state = 'finished'`);
  assert.deepEqual(await matched(letters), [null, null, null, null]);
});

test('of equal messages each dead letter is another one', async () => {
  const redrive = await sendAll(['a', 'a', 'a'], { isWatched: true });
  await database.db.query(
    sql`UPDATE dlq.redrive_items SET sha256 = (SELECT sha256 FROM dlq.redrive_items WHERE position = 1)`,
  );
  const [a = '', b = '', c = ''] = await idsOf(redrive);
  const letter = letterOf({ key: 'a', value: '0' });
  await mark(returnOf(a));
  assert.deepEqual(await matched([letter, letter, letter, letter]), [b, c, a, null]);
});

test('a dead letter that names where its record was published is recognised, whatever its bytes are', async () => {
  const redrive = await sendAll(['a'], { isWatched: true });
  const [a = ''] = await idsOf(redrive);
  const named = (offset: bigint): DeadLetter =>
    letterOf({ key: 'x', value: 'changed' }, { originalPartition: 0, originalOffset: offset });
  assert.deepEqual(await matched([named(7n), named(8n)]), [a, null]);
});

test('a dead letter that names an offset waits for the messages in flight to its topic', async () => {
  const { db } = database;
  const redrive = await startRedrive(db, ['a'], { canary });
  await db.query(sql`UPDATE dlq.redrives SET stage = 2, watched_targets = ARRAY['orders.v1']`);
  const claimed = await claimAll(db, redrive);
  const letter = letterOf({ key: 'x', value: 'changed' }, { originalPartition: 0, originalOffset: 7n });
  let isMatched = false;
  const matching = matched([letter]).finally(() => (isMatched = true));
  await matched([letterOf({ key: 'x', value: 'other' })]);
  assert.equal(isMatched, false);
  await settleAll(db, redrive, { claimed, outcome: { end: 'published', partition: 0, offset: 7n } });
  assert.deepEqual(await matching, await idsOf(redrive));
});
