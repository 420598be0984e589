import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../../tests/support/database.ts';
import { storeRecords } from '../../../../tests/support/stored-message.ts';
import { createTestWorker } from '../../../../tests/support/worker.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import type { RedriveState } from '../../domain/redrive.ts';
import { reapAttempts, type AttemptOutcome } from '../settle-messages.ts';
import { claimItems, type ClaimedItems } from './claim-items.ts';
import { finishRedrive } from './end-redrive.ts';
import type { LeasedRedrive } from './redrives-table.ts';
import { endLostItems, settleItems } from './settle-items.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
afterEach(() =>
  database.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items`),
);

const noneHeld = { positions: new Set<number>(), keys: new Set<string>(), givenUp: new Set<number>() };

/** A running redrive over these keys, leased by this test, with its items as a plan writes them. */
async function startRedrive(
  keys: readonly string[],
  state: RedriveState = 'running',
): Promise<LeasedRedrive> {
  const { db } = database;
  await storeRecords(
    db,
    'orders.v1',
    keys.map((key, i) => ({ key, value: `${i}` })),
  );
  const id = randomUUID();
  const options = { rate_per_second: null, order: 'key' } as const;
  const [row] = await db.query<{ epoch: bigint }>(sql`
    INSERT INTO dlq.redrives (id, state, filter, options, actor, reason, lease_epoch)
    VALUES (${id}, ${state}, '{}', ${JSON.stringify(options)}::jsonb, 'alice', 'fixed', nextval('platform.lease_epochs'))
    RETURNING lease_epoch AS epoch`);
  await db.query(sql`
    INSERT INTO dlq.redrive_items (redrive_id, position, message_id, planned_epoch, target, key_hash)
    SELECT ${id}::uuid, row_number() OVER (ORDER BY created_at, id), id, lease_epoch, original_topic, sha256(message_key)
    FROM dlq.dlq_messages`);
  const lease = { owner: 'worker-1', epoch: row?.epoch ?? 0n, endsAtMs: Infinity };
  return {
    id,
    kind: 'retry',
    state,
    filter: {},
    options,
    actor: 'alice',
    reason: 'fixed',
    isPlanned: true,
    lease,
  };
}

async function claimAll(redrive: LeasedRedrive, leaseMs = 30_000): Promise<ClaimedItems | string> {
  const deps = { db: database.db, worker: createTestWorker(database.db), leaseMs };
  const wanted = { after: 0, limit: 100, held: noneHeld, withoutTargets: [], mayRunAlone: false };
  const claimed = await claimItems(deps, redrive, wanted);
  return claimed.result === 'claimed' ? claimed.items : claimed.result;
}

async function claimedItems(redrive: LeasedRedrive, leaseMs?: number): Promise<ClaimedItems> {
  const items = await claimAll(redrive, leaseMs);
  assert.ok(typeof items !== 'string');
  return items;
}

async function settleAll(
  redrive: LeasedRedrive,
  { batch }: ClaimedItems,
  outcome: AttemptOutcome,
): Promise<void> {
  const deps = { db: database.db, worker: createTestWorker(database.db), onSettleRetry: () => {} };
  const outcomes = new Map(batch.messages.map(({ id }) => [id, outcome]));
  await settleItems(deps, redrive, {
    lease: batch.lease,
    outcomes,
    actor: 'alice',
    unsendable: new Map(),
  });
}

const outcomes = async (): Promise<readonly unknown[]> => {
  const rows = await database.db.query<{ outcome: string | null; reason: string | null }>(sql`
    SELECT outcome, reason FROM dlq.redrive_items ORDER BY position`);
  return rows.map(({ outcome }) => outcome);
};

const acked: AttemptOutcome = { end: 'published', partition: 0, offset: 7n };

test('a process that lost the lease of the redrive claims nothing, and neither does one of a paused redrive', async () => {
  const redrive = await startRedrive(['a']);
  const lost = { ...redrive, lease: { ...redrive.lease, epoch: redrive.lease.epoch - 1n } };
  assert.equal(await claimAll(lost), 'not_running');
  await database.db.query(sql`UPDATE dlq.redrives SET state = 'paused'`);
  assert.equal(await claimAll(redrive), 'not_running');
  await database.db.query(sql`UPDATE dlq.redrives SET state = 'running'`);
  assert.equal((await claimedItems(redrive)).batch.messages.length, 1);
});

test('a message with another epoch than the plan saw is skipped, with the rest of its key', async () => {
  const redrive = await startRedrive(['a', 'b', 'a']);
  await database.db.query(sql`
    UPDATE dlq.dlq_messages SET lease_epoch = nextval('platform.lease_epochs')
    WHERE id = (SELECT message_id FROM dlq.redrive_items WHERE position = 1)`);
  const { batch } = await claimedItems(redrive);
  assert.equal(batch.messages.length, 1);
  assert.deepEqual(await outcomes(), ['skipped', null, 'skipped']);
});

test('a released item waits again, under the epoch that its message has now', async () => {
  const redrive = await startRedrive(['a', 'b']);
  await settleAll(redrive, await claimedItems(redrive), { end: 'released', reason: 'outage' });
  assert.deepEqual(await outcomes(), [null, null]);
  const again = await claimedItems(redrive);
  assert.equal(again.batch.messages.length, 2);
  await settleAll(redrive, again, acked);
  assert.deepEqual(await outcomes(), ['published', 'published']);
});

test('the reaper ends the items of a lost process as unknown, and they are not claimed again', async () => {
  const redrive = await startRedrive(['a', 'b']);
  const lost = await claimedItems(redrive, 0);
  assert.equal(await reapAttempts(database.db), 2);
  assert.deepEqual(await outcomes(), ['unknown', 'unknown']);
  assert.equal((await claimedItems(redrive)).batch.messages.length, 0);
  // The process was only slow, and its messages were published.
  await settleAll(redrive, lost, acked);
  assert.deepEqual(await outcomes(), ['published', 'published']);
});

test('an item whose message somebody deleted while it was in flight ends as unknown', async () => {
  const redrive = await startRedrive(['a', 'b']);
  await claimedItems(redrive);
  await database.db.query(sql`
    DELETE FROM dlq.dlq_messages WHERE id = (SELECT message_id FROM dlq.redrive_items WHERE position = 1)`);
  assert.deepEqual([...(await endLostItems(database.db, redrive.id, [1, 2]))], [2]);
  assert.deepEqual(await outcomes(), ['unknown', null]);
});

test('a redrive does not finish while a message is in flight, and its receipt does not change afterwards', async () => {
  const redrive = await startRedrive(['a']);
  const lost = await claimedItems(redrive, 0);
  assert.equal(await finishRedrive(database.db, redrive), false);
  await reapAttempts(database.db);
  assert.equal(await finishRedrive(database.db, redrive), true);
  await settleAll(redrive, lost, acked);
  assert.deepEqual(await outcomes(), ['unknown']);
  const [row] = await database.db.query(sql`
    SELECT state, receipt->'counts'->>'unknown' AS unknown FROM dlq.redrives`);
  assert.deepEqual(row, { state: 'finished', unknown: '1' });
});
