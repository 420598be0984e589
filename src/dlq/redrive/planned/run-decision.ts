import type { Clock } from '../../../kernel/clock.ts';
import { sleep } from '../../../kernel/clock.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { allowance, changeRate, spend, startPace, waitMs, type Pace } from '../../domain/pace.ts';
import { skipReasons } from '../../domain/redrive-item.ts';
import type { Decision } from '../../domain/redrive-kind.ts';
import { redriveDetail } from '../../domain/redrive.ts';
import { finishRedrive } from './end-redrive.ts';
import { isSelectable } from './plan-scope.ts';
import { holdRedrive, isWaiting, readRate, sharedLock, type LeasedRedrive } from './redrives-table.ts';

/** Applies a decision to messages that still have their epoch and that nobody has locked; returns their ids. */
export type DecideMessages = (
  tx: Queryable,
  decision: Readonly<{
    kind: Decision;
    messages: readonly Readonly<{ id: string; epoch: bigint }>[];
    actor: string;
    reason: string;
    detail: string;
  }>,
) => Promise<ReadonlySet<string>>;

export type DecisionDeps = Readonly<{
  db: Database;
  clock: Clock;
  decide: DecideMessages;
  /** Between two passes over locked messages, and between two looks at the rate. Default 500 ms. */
  restMs?: number;
}>;

type DecisionRedrive = LeasedRedrive & Readonly<{ kind: Decision }>;

type Run = {
  pace: Pace;
  after: number;
  /** In how many passes the message of the item at a position was locked. */
  readonly locked: Map<number, number>;
};

/** How often an item whose message is locked is left for the next pass. */
const maxPasses = 10;

/**
 * Runs a bulk decision while this process holds the lease of the redrive. Each round applies the decision to the next
 * messages and writes their items in one transaction, so that there is nothing in flight and nothing in doubt: after a
 * crash an item either has its outcome or waits. It needs no broker.
 */
export async function runDecision(
  deps: DecisionDeps,
  redrive: DecisionRedrive,
  leased: AbortSignal,
): Promise<void> {
  const { clock, restMs = 500 } = deps;
  const run: Run = {
    pace: startPace(redrive.options.rate_per_second, clock.monotonicMs()),
    after: 0,
    locked: new Map(),
  };
  while (!leased.aborted) {
    const next = await runRound({ ...deps, restMs }, redrive, run);
    if (next === 'ended') return;
    if (next > 0) await sleep(Math.min(next, restMs), leased);
  }
}

/** Returns how long to rest before the next round. */
async function runRound(
  deps: Required<DecisionDeps>,
  redrive: DecisionRedrive,
  run: Run,
): Promise<number | 'ended'> {
  const nowMs = deps.clock.monotonicMs();
  run.pace = changeRate(run.pace, await readRate(deps.db, redrive.id), nowMs);
  const limit = allowance(run.pace, nowMs);
  if (limit === 0) return waitMs(run.pace, nowMs);
  const round = await deps.db.transaction((tx) => applyNext(deps, tx, { redrive, run, limit }));
  if (round === null) return 'ended';
  run.pace = spend(run.pace, round.applied, nowMs);
  run.after = round.last;
  for (const position of round.locked) run.locked.set(position, (run.locked.get(position) ?? 0) + 1);
  if (!round.isAtEnd) return 0;
  if (await finishRedrive(deps.db, redrive)) return 'ended';
  run.after = 0;
  return deps.restMs;
}

type ItemRow = Readonly<{ position: number; messageId: string; epoch: bigint; isUnchanged: boolean }>;
type Round = Readonly<{ applied: number; locked: readonly number[]; last: number; isAtEnd: boolean }>;
type Next = Readonly<{ redrive: DecisionRedrive; run: Run; limit: number }>;

/** Null if the redrive was paused or cancelled, or another process has its lease. */
async function applyNext(
  { decide }: DecisionDeps,
  tx: Queryable,
  { redrive, run, limit }: Next,
): Promise<Round | null> {
  if (!(await holdRedrive(tx, redrive, { state: 'running', lock: sharedLock }))) return null;
  const { id, kind, actor, reason } = redrive;
  const items = await tx.query<ItemRow>(sql`
    SELECT i.position, i.message_id AS "messageId", i.planned_epoch AS epoch,
           COALESCE(t.lease_epoch = i.planned_epoch AND ${isSelectable(redrive)}, false) AS "isUnchanged"
    FROM (
      SELECT * FROM dlq.redrive_items i
      WHERE i.redrive_id = ${id} AND i.position > ${run.after} AND ${isWaiting}
      ORDER BY i.position
      LIMIT ${limit}
    ) AS i
    LEFT JOIN dlq.dlq_messages t ON t.id = i.message_id
    ORDER BY i.position`);
  const messages = items
    .filter(({ isUnchanged }) => isUnchanged)
    .map(({ messageId, epoch }) => ({ id: messageId, epoch }));
  const done =
    messages.length === 0
      ? new Set<string>()
      : await decide(tx, { kind, messages, actor, reason, detail: redriveDetail(id) });

  const applied = items.filter(({ messageId }) => done.has(messageId));
  const changed = items.filter(({ isUnchanged }) => !isUnchanged);
  const locked = items.filter(({ isUnchanged, messageId }) => isUnchanged && !done.has(messageId));
  const givenUp = locked.filter(({ position }) => (run.locked.get(position) ?? 0) >= maxPasses);
  await writeOutcomes(tx, id, [
    ...applied.map(({ position }) => ({ position, outcome: 'applied' as const, reason: null })),
    ...changed.map(({ position }) => ({
      position,
      outcome: 'skipped' as const,
      reason: skipReasons.changed,
    })),
    ...givenUp.map(({ position }) => ({ position, outcome: 'skipped' as const, reason: skipReasons.locked })),
  ]);
  return {
    applied: applied.length,
    locked: locked.map(({ position }) => position),
    last: items.at(-1)?.position ?? run.after,
    isAtEnd: items.length < limit,
  };
}

type Written = Readonly<{ position: number; outcome: 'applied' | 'skipped'; reason: string | null }>;

async function writeOutcomes(tx: Queryable, redriveId: string, ended: readonly Written[]): Promise<void> {
  if (ended.length === 0) return;
  await tx.query(sql`
    UPDATE dlq.redrive_items i SET outcome = ended.outcome, reason = ended.reason, settled_at = clock_timestamp()
    FROM unnest(${ended.map(({ position }) => position)}::int[], ${ended.map(({ outcome }) => outcome)}::text[],
                ${ended.map(({ reason }) => reason)}::text[]) AS ended (position, outcome, reason)
    WHERE i.redrive_id = ${redriveId} AND i.position = ended.position AND ${isWaiting}`);
}
