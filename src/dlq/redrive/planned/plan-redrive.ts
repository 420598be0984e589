import { passes } from '../../../kernel/access/scope.ts';
import { messageOf } from '../../../kernel/errors.ts';
import { cleanText } from '../../../kernel/text.ts';
import { systemAct } from '../../../platform/audit/system-act.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { unnestRows } from '../../../platform/postgres/unnest-rows.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { needsApproval } from '../../domain/approval.ts';
import type { Payloads } from '../../domain/payloads.ts';
import { stateAfter, type RedriveState } from '../../domain/redrive.ts';
import type { GroupBroker } from '../consumer-groups.ts';
import { addReaders } from './plan-readers.ts';
import {
  findMissingIds,
  hashesFor,
  inScope,
  originColumns,
  planRows,
  type Origin,
  type PlanRow,
} from './plan-scope.ts';
import { createPlanTally, type KeyCounts, type PlanCounts } from './plan-tally.ts';
import { decisionTargets, findPlanTargets, type PlanTargets, type TargetDeps } from './plan-targets.ts';
import { recordRedrive } from './record-redrive.ts';
import { exclusiveLock, holdRedrive, sharedLock, type LeasedRedrive } from './redrives-table.ts';

export type PlanDeps = TargetDeps &
  Readonly<{
    db: Database;
    payloads: Payloads;
    republishKey: 'original' | 'uuid';
    maxItems: number;
    /** Null without a broker. */
    broker: GroupBroker | null;
    /** How many messages need no approval of a second person; null: any number. */
    approvalBound: number | null;
  }>;

/**
 * Plans a redrive: reads the selection from one snapshot, without bodies, and writes it down as items on a second
 * connection, in batches. A process that takes over starts again from nothing. The plan ends without a result if the
 * redrive was cancelled or its lease was lost; it fails if the broker cannot be asked or the selection is too large.
 */
export async function planRedrive(
  deps: PlanDeps,
  redrive: LeasedRedrive,
  leased: AbortSignal,
): Promise<void> {
  const { db } = deps;
  await deleteItems(db, redrive.id);
  const targets = await findTargets(deps, redrive, leased);
  if (leased.aborted) return;
  const plan =
    typeof targets === 'string'
      ? `failed to check the target topics: ${targets}`
      : await readSelection(deps, redrive, { place: withinScopes(redrive, targets.place), leased }).catch(
          endOf,
        );
  if (plan === null) return;
  if (typeof plan === 'string') return failPlan(db, redrive, plan);
  const broker = redrive.kind === 'retry' ? deps.broker : null;
  const readers = await addReaders(broker, plan.counts.targets, leased);
  await db.transaction(async (tx) => {
    if (!(await holdRedrive(tx, redrive, { state: 'planning', lock: exclusiveLock }))) return;
    const counts = { ...plan.counts, ...readers, keys: await countKeys(tx, redrive.id) };
    await tx.query(sql`
      UPDATE dlq.redrives
      SET state = ${stateOf(deps, redrive, plan)}, topics = ${plan.topics}::text[], planned_at = clock_timestamp(), frozen_at = ${plan.frozenAt}::timestamptz,
          counts = ${JSON.stringify(counts)}::jsonb
      WHERE id = ${redrive.id}`);
    await recordRedrive(tx, systemAct('dlq:redrives:plan', null), {
      id: redrive.id,
      items: plan.counts.selected,
      detail: { change: 'plan_made', for: redrive.actor },
    });
  });
}

/** Or why the broker could not be asked. */
async function findTargets(
  deps: PlanDeps,
  redrive: LeasedRedrive,
  leased: AbortSignal,
): Promise<PlanTargets | string> {
  if (redrive.kind !== 'retry') return decisionTargets(redrive.kind);
  const origins = await deps.db.query<Origin>(sql`
    SELECT DISTINCT ${originColumns} FROM dlq.dlq_messages t WHERE ${inScope(redrive, await hashesFor(deps, redrive))}`);
  return findPlanTargets(deps, origins, leased).catch((error: unknown) => messageOf(error));
}

/** A plan that is too large for one person waits for a second one. */
function stateOf({ approvalBound }: PlanDeps, { filter }: LeasedRedrive, { counts }: Plan): RedriveState {
  const bound = filter.policy === undefined ? approvalBound : null;
  const isLarge = needsApproval({ selected: counts.selected, lastHour: 0, bound });
  return stateAfter(isLarge ? 'await_approval' : 'planned');
}

/** A message in scope may still go to a topic out of scope. */
function withinScopes({ scopes = [] }: LeasedRedrive, place: PlanTargets['place']): PlanTargets['place'] {
  const isInScope = new Map<string, boolean>();
  return (row) => {
    const placed = place(row);
    if (placed === null || 'excluded' in placed) return placed;
    const { target } = placed;
    const isAllowed = isInScope.get(target) ?? scopes.every((names) => passes(names, target));
    isInScope.set(target, isAllowed);
    return isAllowed ? placed : { excluded: 'target_not_in_scope' };
  };
}

type Plan = Readonly<{
  frozenAt: string;
  counts: PlanCounts;
  /** Original topics of all messages that it found, and targets. */
  topics: readonly string[];
}>;

/** The redrive was cancelled, or another process has its lease. */
class PlanEndedError extends Error {}

class TooManyError extends Error {}

/** Why the plan failed; null if it is not ours any more. Any other error is tried again. */
function endOf(error: unknown): string | null {
  if (error instanceof PlanEndedError) return null;
  if (error instanceof TooManyError) return error.message;
  throw error;
}

type Selection = Readonly<{
  place: PlanTargets['place'];
  leased: AbortSignal;
}>;

async function readSelection(deps: PlanDeps, redrive: LeasedRedrive, selection: Selection): Promise<Plan> {
  const tally = createPlanTally();
  const hashes = await hashesFor(deps, redrive);
  const topics = new Set<string>();
  return deps.db.transaction(
    async (tx) => {
      await tx.query(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`);
      // A sort of a million rows, and the time for writing a batch between two reads.
      await tx.query(sql`SET LOCAL statement_timeout = '10min'`);
      await tx.query(sql`SET LOCAL idle_in_transaction_session_timeout = '60s'`);
      const [snapshot] = await tx.query<{ at: string }>(sql`SELECT clock_timestamp()::text AS at`);
      await tx.query(sql`DECLARE selection NO SCROLL CURSOR FOR ${planRows(redrive, hashes)}`);
      for (let position = 0; ;) {
        if (selection.leased.aborted) throw new PlanEndedError();
        const rows = await tx.query<PlanRow>(sql`FETCH 10000 FROM selection`);
        const items: Item[] = [];
        for (const row of rows) {
          const placed = selection.place(row);
          if (placed === null) continue;
          topics.add(row.originalTopic);
          if ('excluded' in placed) {
            tally.exclude(placed.excluded, row.id);
            if (placed.excluded === 'in_another_redrive' && row.elsewhere !== null)
              tally.overlap(row.elsewhere);
            continue;
          }
          topics.add(placed.target);
          tally.select({ ...row, target: placed.target });
          items.push({ ...row, target: placed.target, position: (position += 1) });
        }
        if (position > deps.maxItems) throw new TooManyError(tooMany(deps.maxItems));
        if (items.length > 0) await insertItems(deps, redrive, items);
        if (rows.length === 0) break;
      }
      for (const { id, isArchived } of await findMissingIds(tx, redrive))
        tally.exclude(isArchived ? 'archived' : 'not_found', id);
      return { frozenAt: snapshot?.at ?? 'now', counts: tally.result(), topics: [...topics] };
    },
    { isPatient: true },
  );
}

export function tooMany(maxItems: number): string {
  return `the filter selects more than ${maxItems.toLocaleString('en')} messages; narrow it by topic or time`;
}

type Item = PlanRow & Readonly<{ target: string; position: number }>;

async function insertItems(
  { db, republishKey }: PlanDeps,
  redrive: LeasedRedrive,
  items: readonly Item[],
): Promise<void> {
  const hasOrder = redrive.kind === 'retry' && republishKey === 'original';
  const rows = unnestRows(sql`item`, items, [
    [sql`position`, sql`int[]`, ({ position }) => position],
    [sql`message_id`, sql`uuid[]`, ({ id }) => id],
    [sql`epoch`, sql`bigint[]`, ({ epoch }) => epoch],
    [sql`target`, sql`text[]`, ({ target }) => target],
    [sql`key_hash`, sql`text[]`, ({ keyHash }) => (hasOrder ? (keyHash?.toString('hex') ?? null) : null)],
    [sql`fingerprint`, sql`text[]`, ({ fingerprint }) => fingerprint],
  ]);
  await db.transaction(async (tx) => {
    if (!(await holdRedrive(tx, redrive, { state: 'planning', lock: sharedLock })))
      throw new PlanEndedError();
    await tx.query(sql`
      INSERT INTO dlq.redrive_items (redrive_id, position, message_id, planned_epoch, target, key_hash, fingerprint)
      SELECT ${redrive.id}::uuid, item.position, item.message_id, item.epoch, item.target, decode(item.key_hash, 'hex'),
             item.fingerprint
      FROM ${rows}`);
  });
}

/** Counted by the database, which can sort a million keys on disk. */
async function countKeys(tx: Queryable, redriveId: string): Promise<KeyCounts> {
  const [row] = await tx.query<KeyCounts>(sql`
    SELECT count(*) FILTER (WHERE key_hash IS NOT NULL)::int AS distinct,
           COALESCE(max(count) FILTER (WHERE key_hash IS NOT NULL), 0)::int AS longest,
           COALESCE(sum(count) FILTER (WHERE key_hash IS NULL), 0)::int AS without_key
    FROM (
      SELECT key_hash, count(*) AS count FROM dlq.redrive_items WHERE redrive_id = ${redriveId}
      GROUP BY target, key_hash) AS keys`);
  return row ?? { distinct: 0, longest: 0, without_key: 0 };
}

export async function failPlan(db: Database, redrive: LeasedRedrive, reason: string): Promise<void> {
  await db.transaction(async (tx) => {
    if (!(await holdRedrive(tx, redrive, { state: 'planning', lock: exclusiveLock }))) return;
    await tx.query(sql`
      UPDATE dlq.redrives
      SET state = ${stateAfter('fail')}, state_reason = ${cleanText(reason, 1000)}, finished_at = clock_timestamp()
      WHERE id = ${redrive.id}`);
    await recordRedrive(tx, systemAct('dlq:redrives:end', cleanText(reason, 1000)), {
      id: redrive.id,
      items: 0,
      outcome: 'failure',
      detail: { change: 'failed', for: redrive.actor },
    });
  });
  await deleteItems(db, redrive.id);
}

const deleteBatch = 10_000;

export async function deleteItems(db: Queryable, redriveId: string): Promise<void> {
  for (let isFull = true; isFull;) {
    const rows = await db.query<{ position: number }>(sql`
      DELETE FROM dlq.redrive_items WHERE redrive_id = ${redriveId} AND position IN (
        SELECT position FROM dlq.redrive_items WHERE redrive_id = ${redriveId} ORDER BY position LIMIT ${deleteBatch})
      RETURNING position`);
    isFull = rows.length === deleteBatch;
  }
}
