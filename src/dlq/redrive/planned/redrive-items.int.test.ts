import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../../tests/support/database.ts';
import {
  claimAll,
  outcomesOf,
  settleAll,
  startRedrive,
  tryClaim,
} from '../../../../tests/support/running-redrive.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import { reapAttempts, type AttemptOutcome } from '../settle-messages.ts';
import { finishRedrive } from './end-redrive.ts';
import { endLostItems } from './settle-items.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
afterEach(() =>
  database.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items`),
);

const acked: AttemptOutcome = { end: 'published', partition: 0, offset: 7n };

test('a process that lost the lease of the redrive claims nothing, and neither does one of a paused redrive', async () => {
  const redrive = await startRedrive(database.db, ['a']);
  const lost = { ...redrive, lease: { ...redrive.lease, epoch: redrive.lease.epoch - 1n } };
  assert.equal(await tryClaim(database.db, lost), 'not_running');
  await database.db.query(sql`UPDATE dlq.redrives SET state = 'paused'`);
  assert.equal(await tryClaim(database.db, redrive), 'not_running');
  await database.db.query(sql`UPDATE dlq.redrives SET state = 'running'`);
  assert.equal((await claimAll(database.db, redrive)).batch.messages.length, 1);
});

test('a message with another epoch than the plan saw is skipped, with the rest of its key', async () => {
  const redrive = await startRedrive(database.db, ['a', 'b', 'a']);
  await database.db.query(sql`
    UPDATE dlq.dlq_messages SET lease_epoch = nextval('platform.lease_epochs')
    WHERE id = (SELECT message_id FROM dlq.redrive_items WHERE position = 1)`);
  const { batch } = await claimAll(database.db, redrive);
  assert.equal(batch.messages.length, 1);
  assert.deepEqual(await outcomesOf(database.db, redrive.id), ['skipped', null, 'skipped']);
});

test('a message that somebody touches while it is being claimed is not claimed', async () => {
  const { db } = database;
  const redrive = await startRedrive(db, ['a']);
  const touched: Database = {
    ...db,
    transaction: (work, options) =>
      db.transaction(
        (tx) =>
          work({
            async query<Row>(statement: Sql): Promise<readonly Row[]> {
              const rows = await tx.query<Row>(statement);
              if (statement.text.includes('"isUnchanged"'))
                await db.query(sql`
                  UPDATE dlq.dlq_messages SET lease_epoch = nextval('platform.lease_epochs')`);
              return rows;
            },
          }),
        options,
      ),
  };
  assert.equal(await tryClaim(touched, redrive), 'locked');
  assert.deepEqual(await outcomesOf(db, redrive.id), [null]);
});

test('a released item waits again, under the epoch that its message has now', async () => {
  const redrive = await startRedrive(database.db, ['a', 'b']);
  await settleAll(database.db, redrive, {
    claimed: await claimAll(database.db, redrive),
    outcome: { end: 'released', reason: 'outage' },
  });
  assert.deepEqual(await outcomesOf(database.db, redrive.id), [null, null]);
  const again = await claimAll(database.db, redrive);
  assert.equal(again.batch.messages.length, 2);
  await settleAll(database.db, redrive, { claimed: again, outcome: acked });
  assert.deepEqual(await outcomesOf(database.db, redrive.id), ['published', 'published']);
});

test('the reaper ends the items of a lost process as unknown, and they are not claimed again', async () => {
  const redrive = await startRedrive(database.db, ['a', 'b']);
  const lost = await claimAll(database.db, redrive, 0);
  assert.equal(await reapAttempts(database.db), 2);
  assert.deepEqual(await outcomesOf(database.db, redrive.id), ['unknown', 'unknown']);
  assert.equal((await claimAll(database.db, redrive)).batch.messages.length, 0);
  // The process was only slow, and its messages were published.
  await settleAll(database.db, redrive, { claimed: lost, outcome: acked });
  assert.deepEqual(await outcomesOf(database.db, redrive.id), ['published', 'published']);
});

test('an item whose message somebody deleted while it was in flight ends as unknown', async () => {
  const redrive = await startRedrive(database.db, ['a', 'b']);
  await claimAll(database.db, redrive);
  await database.db.query(sql`
    DELETE FROM dlq.dlq_messages WHERE id = (SELECT message_id FROM dlq.redrive_items WHERE position = 1)`);
  assert.deepEqual([...(await endLostItems(database.db, redrive.id, [1, 2]))], [2]);
  assert.deepEqual(await outcomesOf(database.db, redrive.id), ['unknown', null]);
});

test('a redrive does not finish while a message is in flight, and its receipt does not change afterwards', async () => {
  const redrive = await startRedrive(database.db, ['a']);
  const lost = await claimAll(database.db, redrive, 0);
  assert.equal(await finishRedrive(database.db, redrive), false);
  await reapAttempts(database.db);
  assert.equal(await finishRedrive(database.db, redrive), true);
  await settleAll(database.db, redrive, { claimed: lost, outcome: acked });
  assert.deepEqual(await outcomesOf(database.db, redrive.id), ['unknown']);
  const [row] = await database.db.query(sql`
    SELECT state, receipt->'counts'->>'unknown' AS unknown FROM dlq.redrives`);
  assert.deepEqual(row, { state: 'finished', unknown: '1' });
});

test('an acknowledgement that is settled after the message came back adds its place only', async () => {
  const redrive = await startRedrive(database.db, ['a']);
  const claimed = await claimAll(database.db, redrive);
  await database.db.query(sql`
    UPDATE dlq.redrive_items SET outcome = 'came_back', came_back_at = clock_timestamp(), reason = 'timeout'`);
  for (const outcome of [acked, { end: 'published', partition: 1, offset: 8n }] as const)
    await settleAll(database.db, redrive, { claimed, outcome });
  const rows = await database.db.query(
    sql`SELECT outcome, reason, partition, "offset" FROM dlq.redrive_items`,
  );
  assert.deepEqual(rows, [{ outcome: 'came_back', reason: 'timeout', partition: 0, offset: 7n }]);
});
