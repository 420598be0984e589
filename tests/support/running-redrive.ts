import assert from 'node:assert/strict';
import type { Canary } from '../../src/dlq/domain/canary.ts';
import type { RedriveState } from '../../src/dlq/domain/redrive.ts';
import { claimItems, type ClaimedItems } from '../../src/dlq/redrive/planned/claim-items.ts';
import type { LeasedRedrive } from '../../src/dlq/redrive/planned/redrives-table.ts';
import { settleItems } from '../../src/dlq/redrive/planned/settle-items.ts';
import type { AttemptOutcome } from '../../src/dlq/redrive/settle-messages.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { leaseRedrive, planItems } from './redrive-runs.ts';
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
  const redrive = await leaseRedrive(db, { state, options: { canary } });
  await planItems(db, redrive);
  return redrive;
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
