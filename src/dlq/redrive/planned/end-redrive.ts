import { createHash } from 'node:crypto';
import { sleep } from '../../../kernel/clock.ts';
import { systemAct } from '../../../platform/audit/system-act.ts';
import type { Act } from '../../../kernel/audit/act.ts';
import { cleanText } from '../../../kernel/text.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { addNotifyEvent } from '../../../platform/work/notify-events.ts';
import { itemOutcomes, type ItemOutcome } from '../../domain/redrive-item.ts';
import { stateAfter, type RedriveState, type StoppedBy } from '../../domain/redrive.ts';
import { exclusiveLock, holdRedrive, isInFlight, isWaiting, type LeasedRedrive } from './redrives-table.ts';
import { deleteItems } from './plan-redrive.ts';
import { recordRedrive } from './record-redrive.ts';
import { endLostItems } from './settle-items.ts';

/** Counts that add up to the selection, and a hash of the lines that show how each message ended. */
export type Receipt = Readonly<{
  sha256: string;
  counts: Readonly<Record<ItemOutcome, number>> & Readonly<{ selected: number }>;
}>;

/** Writes the receipt if every item has an outcome; false if one has none. */
export async function finishRedrive(db: Database, redrive: LeasedRedrive): Promise<boolean> {
  return db.transaction(async (tx) => {
    if (!(await holdRedrive(tx, redrive, { state: 'running', lock: exclusiveLock }))) return true;
    const receipt = await makeReceipt(tx, redrive.id);
    if (receipt === null) return false;
    await writeReceipt(tx, redrive, { state: stateAfter('finish'), receipt });
    // A policy finishes many redrives; it reports when it needs a person.
    if (redrive.filter.policy === undefined)
      await notifyEnd(tx, redrive.id, 'redrive_finished', summaryOf(receipt));
    return true;
  });
}

/** An outage has lasted too long. */
export async function stopRedrive(
  db: Database,
  redrive: LeasedRedrive,
  { by, reason }: Readonly<{ by: StoppedBy; reason: string }>,
): Promise<void> {
  await db.transaction(async (tx) => {
    if (!(await holdRedrive(tx, redrive, { state: 'running', lock: exclusiveLock }))) return;
    await tx.query(sql`
      UPDATE dlq.redrives
      SET state = ${stateAfter('stop')}, stopped_by = ${by}, state_reason = ${cleanText(reason, 1000)}
      WHERE id = ${redrive.id}`);
    await recordRedrive(tx, endingAct(cleanText(reason, 1000)), {
      id: redrive.id,
      items: 0,
      outcome: 'failure',
      detail: { change: 'stopped', by, for: redrive.actor },
    });
    await notifyEnd(tx, redrive.id, 'redrive_stopped', reason);
  });
}

/** Whoever started it may not go on with it: somebody else may resume it. */
export async function pauseRedrive(db: Database, redrive: LeasedRedrive, reason: string): Promise<void> {
  await db.transaction(async (tx) => {
    if (!(await holdRedrive(tx, redrive, { state: 'running', lock: exclusiveLock }))) return;
    await tx.query(sql`
      UPDATE dlq.redrives
      SET state = ${stateAfter('pause')}, state_reason = ${cleanText(reason, 1000)}, revision = revision + 1,
          paused_at = clock_timestamp(), waiting_for = NULL
      WHERE id = ${redrive.id}`);
    await recordRedrive(tx, endingAct(cleanText(reason, 1000)), {
      id: redrive.id,
      items: 0,
      outcome: 'denied',
      detail: { change: 'paused', for: redrive.startedBy ?? redrive.actor },
    });
  });
}

async function notifyEnd(tx: Queryable, id: string, kind: string, summary: string): Promise<void> {
  await addNotifyEvent(tx, { slice: 'dlq', kind, subject: id, itemId: id, summary });
}

export function summaryOf({ counts }: Receipt): string {
  const parts = itemOutcomes
    .filter((outcome) => counts[outcome] > 0)
    .map((outcome) => `${counts[outcome]} ${outcome}`);
  return `${counts.selected} messages: ${parts.join(', ') || 'none'}`;
}

const batchSize = 10_000;
/** What is in flight ends by its own settle, or by the reaper. */
const pollMs = 500;

/** Ends the items of a cancelled redrive: those that wait at once, those in flight when their attempts have ended. */
export async function endCancelled(db: Database, redrive: LeasedRedrive, leased: AbortSignal): Promise<void> {
  if (!redrive.isPlanned) await deleteItems(db, redrive.id);
  let ended: readonly unknown[];
  do {
    ended = await db.query(sql`
      UPDATE dlq.redrive_items i SET outcome = 'cancelled', settled_at = clock_timestamp()
      WHERE i.redrive_id = ${redrive.id} AND ${isWaiting} AND i.position IN (
        SELECT i.position FROM dlq.redrive_items i WHERE i.redrive_id = ${redrive.id} AND ${isWaiting}
        ORDER BY i.position LIMIT ${batchSize})
      RETURNING i.position`);
  } while (ended.length > 0 && !leased.aborted);

  while (!leased.aborted) {
    if (await writeCancelled(db, redrive)) return;
    const rows = await db.query<{ position: number }>(sql`
      SELECT i.position FROM dlq.redrive_items i WHERE i.redrive_id = ${redrive.id} AND ${isInFlight}`);
    const inFlight = await endLostItems(
      db,
      redrive.id,
      rows.map(({ position }) => position),
    );
    if (inFlight.size > 0) await sleep(pollMs, leased);
    else return endCancelled(db, redrive, leased);
  }
}

async function writeCancelled(db: Database, redrive: LeasedRedrive): Promise<boolean> {
  return db.transaction(async (tx) => {
    if (!(await holdRedrive(tx, redrive, { state: 'cancelled', lock: exclusiveLock }))) return true;
    const receipt = await makeReceipt(tx, redrive.id);
    if (receipt === null) return false;
    await writeReceipt(tx, redrive, { state: 'cancelled', receipt });
    return true;
  });
}

async function writeReceipt(
  tx: Queryable,
  { id, actor }: LeasedRedrive,
  { state, receipt }: Readonly<{ state: RedriveState; receipt: Receipt }>,
): Promise<void> {
  await tx.query(sql`
    UPDATE dlq.redrives
    SET state = ${state}, receipt = ${JSON.stringify(receipt)}::jsonb,
        finished_at = COALESCE(finished_at, clock_timestamp())
    WHERE id = ${id}`);
  const { counts, sha256 } = receipt;
  await recordRedrive(tx, endingAct(null), {
    id,
    items: counts.selected,
    detail: { change: 'finished', state, counts, receipt_sha256: sha256, for: actor },
  });
}

/** It ends by itself; the events before say who planned and started it. */
const endingAct = (reason: string | null): Act => systemAct('dlq:redrives:end', reason);

type ItemRow = Readonly<{
  position: number;
  message_id: string;
  attempt_no: number | null;
  outcome: ItemOutcome | null;
  target: string;
  partition: number | null;
  offset: bigint | null;
}>;

/** Reads all items, in pages; null if one has no outcome yet. */
async function makeReceipt(tx: Queryable, id: string): Promise<Receipt | null> {
  const open = await tx.query(sql`
    SELECT 1 FROM dlq.redrive_items i WHERE i.redrive_id = ${id} AND i.outcome IS NULL LIMIT 1`);
  if (open.length > 0) return null;
  const hash = createHash('sha256');
  const counts = Object.fromEntries(itemOutcomes.map((outcome) => [outcome, 0])) as Record<
    ItemOutcome,
    number
  >;
  let selected = 0;
  for (let after = 0; ;) {
    const rows = await tx.query<ItemRow>(sql`
      SELECT position, message_id, attempt_no, outcome, target, partition, "offset" FROM dlq.redrive_items
      WHERE redrive_id = ${id} AND position > ${after} ORDER BY position LIMIT ${batchSize}`);
    for (const row of rows) {
      if (row.outcome !== null) counts[row.outcome] += 1;
      hash.update(receiptLine(row));
    }
    selected += rows.length;
    after = rows.at(-1)?.position ?? after;
    if (rows.length < batchSize) break;
  }
  return { sha256: hash.digest('hex'), counts: { selected, ...counts } };
}

/** `position,message_id,attempt,outcome,topic,partition,offset`; what is unknown is empty. */
function receiptLine(row: ItemRow): string {
  const { position, message_id: id, attempt_no: attempt, outcome, target, partition, offset } = row;
  return `${[position, id, attempt, outcome, target, partition, offset].map((field) => field ?? '').join(',')}\n`;
}
