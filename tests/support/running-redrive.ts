import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Canary } from '../../src/dlq/domain/canary.ts';
import type { RedriveState } from '../../src/dlq/domain/redrive.ts';
import { claimItems, type ClaimedItems } from '../../src/dlq/redrive/planned/claim-items.ts';
import type { LeasedRedrive } from '../../src/dlq/redrive/planned/redrives-table.ts';
import { settleItems } from '../../src/dlq/redrive/planned/settle-items.ts';
import type { AttemptOutcome } from '../../src/dlq/redrive/settle-messages.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { storeRecords } from './stored-message.ts';
import { createTestWorker } from './worker.ts';

/** A redrive that the test runs step by step, without a runner. */

type Options = Readonly<{ state?: RedriveState; canary?: Canary | null }>;

/** A running redrive over all messages, those of these keys among them, leased by the test and planned. */
export async function startRedrive(
  db: Database,
  keys: readonly string[],
  { state = 'running', canary = null }: Options = {},
): Promise<LeasedRedrive> {
  await storeRecords(
    db,
    'orders.v1',
    keys.map((key, i) => ({ key, value: `${i}` })),
  );
  const id = randomUUID();
  const options = { rate_per_second: null, order: 'key', canary } as const;
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

const noneHeld = { positions: new Set<number>(), keys: new Set<string>(), givenUp: new Set<number>() };

/** Claims what can be claimed now; or why nothing was claimed. */
export async function tryClaim(
  db: Database,
  redrive: LeasedRedrive,
  leaseMs = 30_000,
): Promise<ClaimedItems | string> {
  const deps = { db, worker: createTestWorker(db), leaseMs };
  const wanted = { after: 0, limit: 100, held: noneHeld, withoutTargets: [], mayRunAlone: false };
  const claimed = await claimItems(deps, redrive, wanted);
  return claimed.result === 'claimed' ? claimed.items : claimed.result;
}

export async function claimAll(
  db: Database,
  redrive: LeasedRedrive,
  leaseMs?: number,
): Promise<ClaimedItems> {
  const items = await tryClaim(db, redrive, leaseMs);
  assert.ok(typeof items !== 'string');
  return items;
}

export async function settleAll(
  db: Database,
  redrive: LeasedRedrive,
  { claimed: { batch }, outcome }: Readonly<{ claimed: ClaimedItems; outcome: AttemptOutcome }>,
): Promise<void> {
  const deps = { db, worker: createTestWorker(db), onSettleRetry: () => {} };
  const outcomes = new Map(batch.messages.map(({ id }) => [id, outcome]));
  await settleItems(deps, redrive, {
    lease: batch.lease,
    outcomes,
    actor: 'alice',
    unsendable: new Map(),
  });
}

/** The outcomes in the order of positions. */
export async function outcomesOf(db: Database, redriveId: string): Promise<readonly (string | null)[]> {
  const rows = await db.query<{ outcome: string | null }>(sql`
    SELECT outcome FROM dlq.redrive_items WHERE redrive_id = ${redriveId} ORDER BY position`);
  return rows.map(({ outcome }) => outcome);
}
