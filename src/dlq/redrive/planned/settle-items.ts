import { cleanText } from '../../../kernel/text.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { unnestRows } from '../../../platform/postgres/unnest-rows.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { leaseIsOver } from '../../../platform/work/work.ts';
import { outcomesBefore, type ItemOutcome } from '../../domain/redrive-item.ts';
import {
  settleAttempts,
  type AttemptOutcome,
  type EndedAttempts,
  type SettleDeps,
} from '../settle-messages.ts';
import { isInFlight, type LeasedRedrive } from './redrives-table.ts';

/** Messages that were released and cannot be sent by this redrive, with the reason. */
export type Unsendable = ReadonlyMap<string, string>;

/**
 * Settles the attempts of one claim: the messages, and in the same transaction their items. Items are written by the
 * epoch of the claim, whether or not the message's row still matched: what was sent was sent.
 */
export async function settleItems(
  deps: SettleDeps & Readonly<{ db: Database }>,
  redrive: Pick<LeasedRedrive, 'id'>,
  attempts: EndedAttempts & Readonly<{ unsendable: Unsendable }>,
): Promise<void> {
  const { unsendable } = attempts;
  await settleAttempts(deps, {
    ...attempts,
    also: {
      transaction: deps.db.transaction,
      write: (tx, outcomes) =>
        writeOutcomes(tx, { redriveId: redrive.id, epoch: attempts.lease.epoch, outcomes, unsendable }),
    },
  });
}

type EndOfItem =
  | Exclude<AttemptOutcome, { end: 'released' }>
  | Readonly<{ end: 'skipped' | 'released'; error: string }>;
type Ended = readonly [messageId: string, end: EndOfItem];

function endOf(id: string, outcome: AttemptOutcome, unsendable: Unsendable): EndOfItem {
  if (outcome.end !== 'released') return outcome;
  const reason = unsendable.get(id);
  return reason === undefined
    ? { end: 'released', error: outcome.reason }
    : { end: 'skipped', error: reason };
}

type Outcomes = Readonly<{
  redriveId: string;
  epoch: bigint;
  outcomes: ReadonlyMap<string, AttemptOutcome>;
  unsendable: Unsendable;
}>;

async function writeOutcomes(
  tx: Queryable,
  { redriveId, epoch, outcomes, unsendable }: Outcomes,
): Promise<void> {
  // The receipt of a redrive that has ended does not change; the lock orders this before or after it.
  const open = await tx.query(sql`
    SELECT 1 FROM dlq.redrives WHERE id = ${redriveId} AND receipt IS NULL FOR KEY SHARE`);
  if (open.length === 0) return;
  const all = [...outcomes].map(([id, outcome]): Ended => [id, endOf(id, outcome, unsendable)]);
  const released = all.filter(([, { end }]) => end === 'released').map(([id]) => id);
  if (released.length > 0)
    await tx.query(sql`
      UPDATE dlq.redrive_items i SET planned_epoch = i.claim_epoch, claim_epoch = NULL, attempt_no = NULL
      WHERE i.message_id = ANY(${released}::uuid[]) AND i.redrive_id = ${redriveId} AND i.claim_epoch = ${epoch}
        AND ${isInFlight}`);
  const ended = all.filter(([, { end }]) => end !== 'released');
  if (ended.length === 0) return;
  const rows = unnestRows<Ended>(sql`ended`, ended, [
    [sql`id`, sql`uuid[]`, ([id]) => id],
    [sql`outcome`, sql`text[]`, ([, { end }]) => end],
    [sql`part`, sql`int[]`, ([, one]) => (one.end === 'published' ? one.partition : null)],
    [sql`place`, sql`bigint[]`, ([, one]) => (one.end === 'published' ? one.offset : null)],
    [sql`reason`, sql`text[]`, ([, one]) => ('error' in one ? cleanText(one.error, 1000) : null)],
  ]);
  // An item that came back before its acknowledgement keeps that, and gets its place.
  await tx.query(sql`
    UPDATE dlq.redrive_items i
    SET outcome = CASE WHEN ${cameBack} THEN i.outcome ELSE ended.outcome END,
        partition = ended.part, "offset" = ended.place,
        reason = CASE WHEN ${cameBack} THEN i.reason ELSE ended.reason END,
        settled_at = CASE WHEN ${cameBack} THEN i.settled_at ELSE clock_timestamp() END
    FROM ${rows}
    WHERE i.message_id = ended.id AND i.redrive_id = ${redriveId} AND i.claim_epoch = ${epoch}
      AND (i.outcome IS NULL OR (ended.outcome = 'published' AND (
        (${cameBack} AND i."offset" IS NULL) OR i.outcome = ANY(${earlierThan('published')}::text[]))))`);
}

const cameBack = sql`(i.outcome IS NOT DISTINCT FROM 'came_back')`;

function earlierThan(outcome: ItemOutcome): readonly string[] {
  return outcomesBefore(outcome).filter((before) => before !== null);
}

/**
 * Ends items whose attempt somebody else has ended: the message is no longer leased under the epoch of the item's claim,
 * and the process that sent it, if it was sent, is gone. Returns the positions that are still in flight.
 */
export async function endLostItems(
  db: Database,
  redriveId: string,
  positions: readonly number[],
): Promise<ReadonlySet<number>> {
  const isLost = sql`NOT EXISTS (
    SELECT 1 FROM dlq.dlq_messages t
    WHERE t.id = i.message_id AND t.status = 'RETRYING' AND t.lease_epoch = i.claim_epoch AND NOT ${leaseIsOver})`;
  await db.query(sql`
    UPDATE dlq.redrive_items i
    SET outcome = 'unknown', reason = 'the process that claimed it was lost', settled_at = clock_timestamp()
    WHERE i.redrive_id = ${redriveId} AND i.position = ANY(${positions}::int[]) AND ${isInFlight} AND ${isLost}`);
  const rows = await db.query<{ position: number }>(sql`
    SELECT i.position FROM dlq.redrive_items i
    WHERE i.redrive_id = ${redriveId} AND i.position = ANY(${positions}::int[]) AND ${isInFlight}`);
  return new Set(rows.map(({ position }) => position));
}
