import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import type { Worker } from '../../../platform/work/work.ts';
import {
  chooseItems,
  skipReasons,
  type Candidate,
  type Choice,
  type Held,
} from '../../domain/redrive-item.ts';
import { redriveDetail } from '../../domain/redrive.ts';
import { claimMessages, mustRunAlone, type ClaimedBatch, type ClaimTarget } from '../claim-messages.ts';
import { isSelectable } from './plan-scope.ts';
import { isPlanned, reopenItems } from './reopen-items.ts';
import {
  holdRedrive,
  isWaiting,
  sharedLock,
  type HeldRedrive,
  type LeasedRedrive,
} from './redrives-table.ts';

export type ClaimItemsDeps = Readonly<{ db: Database; worker: Worker; leaseMs: number }>;

export type Wanted = Readonly<{
  /** Items up to this position were looked at in this pass. */
  after: number;
  limit: number;
  held: Held;
  /** Targets that are backing off. */
  withoutTargets: readonly string[];
  mayRunAlone: boolean;
}>;

export type ClaimedItems = Choice &
  Readonly<{
    batch: ClaimedBatch;
    /** Where the next round continues. */
    last: number;
    /** No waiting item was left behind `after`. */
    isAtEnd: boolean;
  }>;

export type ClaimResult =
  | Readonly<{ result: 'claimed'; items: ClaimedItems }>
  /** Paused, cancelled, or taken over by another process. */
  | Readonly<{ result: 'not_running' }>
  /** Rows that other transactions have locked; nothing was claimed. */
  | Readonly<{ result: 'locked'; candidates: readonly Candidate[] }>;

/**
 * Claims the messages of the next waiting items, in one transaction that holds the redrive's row. A message that
 * changed since the plan is skipped, and so is one behind an item with the same key that was not published.
 */
export async function claimItems(
  deps: ClaimItemsDeps,
  redrive: LeasedRedrive,
  wanted: Wanted,
): Promise<ClaimResult> {
  try {
    return await deps.db.transaction(async (tx) => {
      const row = await holdRedrive(tx, redrive, { state: 'running', lock: sharedLock });
      if (row === null) return { result: 'not_running' };
      const candidates = await readCandidates(tx, redrive, { ...wanted, ...row });
      const choice = chooseItems(candidates, wanted.held, wanted);
      await writeSkips(tx, redrive, choice.skip);
      const batch = await claimChosen(deps, tx, { redrive, row, choice });
      const taken = [...choice.claim, ...choice.waiting, ...choice.skip.map(({ candidate }) => candidate)];
      const last = Math.max(wanted.after, ...taken.map(({ position }) => position));
      return {
        result: 'claimed',
        items: { ...choice, batch, last, isAtEnd: candidates.length < wanted.limit && !choice.isAloneNext },
      };
    });
  } catch (error) {
    if (error instanceof MissingRowsError) return { result: 'locked', candidates: error.locked };
    throw error;
  }
}

/** With what the plan wrote down about its message. */
export type PlannedCandidate = Candidate & Readonly<{ plannedEpoch: bigint; target: string }>;

type CandidateRow = PlannedCandidate & Readonly<{ keyHash: string | null }>;

async function readCandidates(
  tx: Queryable,
  redrive: LeasedRedrive,
  { after, limit, withoutTargets, isStaged }: Wanted & HeldRedrive,
): Promise<readonly PlannedCandidate[]> {
  const { id, options } = redrive;
  const isDrawn = isStaged ? sql`i.stage IS NOT NULL` : sql`true`;
  const isReady = withoutTargets.length === 0 ? sql`true` : sql`i.target <> ALL(${withoutTargets}::text[])`;
  const rows = await tx.query<CandidateRow>(sql`
    SELECT i.position, i.message_id AS "messageId", i.planned_epoch AS "plannedEpoch", i.target, encode(i.key_hash, 'hex') AS "keyHash",
           COALESCE(t.lease_epoch = i.planned_epoch AND ${isSelectable(redrive)}, false) AS "isUnchanged",
           COALESCE(${mustRunAlone}, false) AS "runsAlone",
           EXISTS (
             SELECT 1 FROM dlq.redrive_items b
             WHERE b.redrive_id = ${id} AND b.key_hash = i.key_hash AND b.target = i.target
               AND b.position + 0 < i.position AND b.key_hash IS NOT NULL AND ${isBlocking}
           ) AS "isBehind"
    FROM (
      SELECT * FROM dlq.redrive_items i
      WHERE i.redrive_id = ${id} AND i.position > ${after} AND ${isWaiting} AND ${isDrawn} AND ${isReady}
      ORDER BY i.position
      LIMIT ${limit}
    ) AS i
    LEFT JOIN dlq.dlq_messages t ON t.id = i.message_id
    ORDER BY i.position`);
  const hasOrder = options.order === 'key';
  return rows.map(({ keyHash, ...row }) => ({
    ...row,
    isBehind: hasOrder && row.isBehind,
    orderKey: hasOrder && keyHash !== null ? `${row.target} ${keyHash}` : null,
  }));
}

/**
 * The outcomes behind which the rest of the key is skipped, as the partial index has them. The sum in the condition on
 * the position keeps the planner on that index: by the primary key it would read all earlier items for each candidate.
 */
const isBlocking: Sql = sql`b.outcome IN ('failed', 'unknown', 'skipped', 'came_back')`;

async function writeSkips(tx: Queryable, { id }: LeasedRedrive, skip: Choice['skip']): Promise<void> {
  if (skip.length === 0) return;
  await tx.query(sql`
    UPDATE dlq.redrive_items i SET outcome = 'skipped', reason = skipped.reason, settled_at = clock_timestamp()
    FROM unnest(${skip.map(({ candidate }) => candidate.position)}::int[],
                ${skip.map(({ reason }) => skipReasons[reason])}::text[]) AS skipped (position, reason)
    WHERE i.redrive_id = ${id} AND i.position = skipped.position AND ${isWaiting}`);
}

/** Some chosen rows were not claimed: other transactions have locked or changed them. */
class MissingRowsError extends Error {
  readonly locked: readonly Candidate[];

  constructor(locked: readonly Candidate[]) {
    super('rows could not be claimed');
    this.locked = locked;
  }
}

async function claimChosen(
  { worker, leaseMs }: ClaimItemsDeps,
  tx: Queryable,
  {
    redrive,
    row,
    choice,
  }: Readonly<{ redrive: LeasedRedrive; row: HeldRedrive; choice: Choice<PlannedCandidate> }>,
): Promise<ClaimedBatch> {
  const { id, actor, options } = redrive;
  if (options.reopen === true) await reopenItems(tx, redrive, choice.claim);
  const onTx = { worker: { ...worker, db: tx }, leaseMs };
  const batch = await claimMessages(onTx, isPlanned(choice.claim), {
    actor,
    limit: choice.claim.length,
    reroute: targetsOf(choice.claim),
    detail: redriveDetail(id),
  });
  const claimed = new Set(batch.messages.map((message) => message.id));
  const missing = choice.claim.filter(({ messageId }) => !claimed.has(messageId));
  // Rolled back, so that nothing of their keys is sent before them.
  if (missing.length > 0) throw new MissingRowsError(await findLocked(tx, redrive, missing));
  if (batch.messages.length > 0)
    await tx.query(sql`
      UPDATE dlq.redrive_items i
      SET claim_epoch = ${batch.lease.epoch}, attempt_no = claimed.attempt_no ${watchedColumns(row)}
      FROM unnest(${batch.messages.map((message) => message.id)}::uuid[],
                  ${batch.messages.map(({ attemptNo }) => attemptNo)}::int[]) AS claimed (id, attempt_no)
      WHERE i.redrive_id = ${id} AND i.message_id = claimed.id AND ${isWaiting}`);
  const places = new Map(choice.claim.map(({ messageId, position }) => [messageId, position]));
  const placeOf = (messageId: string): number => places.get(messageId) ?? 0;
  return { ...batch, messages: batch.messages.toSorted((a, b) => placeOf(a.id) - placeOf(b.id)) };
}

/** With a canary: the stage that sends it, and the hash by which a dead letter without our headers is recognised. */
function watchedColumns({ stage }: HeldRedrive): Sql {
  if (stage === null) return sql``;
  return sql`, stage = COALESCE(i.stage, ${stage}), sha256 = (
        SELECT t.published_sha256 FROM dlq.dlq_messages t WHERE t.id = i.message_id)`;
}

function targetsOf(planned: readonly PlannedCandidate[]): ClaimTarget {
  const targets = planned.map(({ messageId, target }) => [messageId, target] as const);
  const target = sql`(${JSON.stringify(Object.fromEntries(targets))}::jsonb->>t.id::text)`;
  return { unroutable: target, misnamed: target };
}

/** Those that are still as planned, as far as this transaction can see: only their lock kept them from being claimed. */
async function findLocked(
  tx: Queryable,
  redrive: LeasedRedrive,
  missing: readonly PlannedCandidate[],
): Promise<readonly Candidate[]> {
  const rows = await tx.query<{ id: string }>(sql`
    SELECT t.id FROM dlq.dlq_messages t WHERE ${isPlanned(missing)} AND ${isSelectable(redrive)}`);
  const locked = new Set(rows.map(({ id }) => id));
  return missing.filter(({ messageId }) => locked.has(messageId));
}
