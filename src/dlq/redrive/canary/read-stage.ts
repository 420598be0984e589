import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import { isRest, latestCount, type Canary, type StageView } from '../../domain/canary.ts';
import { isWaiting } from '../planned/redrives-table.ts';

/** The canary of a redrive and what it has sent so far; null without one. */
export type Stage = Readonly<{ canary: Canary; view: Omit<StageView, 'confirmingMs'> }>;

type StageRow = Readonly<{ canary: Canary | null; stage: number; remainingMs: number | null }>;
type Counts = Omit<StageView, 'stage' | 'remainingMs' | 'confirmingMs'>;

export async function readStage(db: Queryable, redriveId: string): Promise<Stage | null> {
  const [row] = await db.query<StageRow>(sql`
    SELECT r.options->'canary' AS canary, COALESCE(r.stage, 1) AS stage,
           (extract(epoch FROM r.watch_until - clock_timestamp()) * 1000)::float8 AS "remainingMs"
    FROM dlq.redrives r WHERE r.id = ${redriveId}`);
  if (row === undefined || row.canary === null) return null;
  const { canary, stage, remainingMs } = row;
  const isWatched = remainingMs !== null;
  const counts = isRest(canary, stage)
    ? await countRest(db, redriveId, { isWatched })
    : await countStaged(db, redriveId);
  return { canary, view: { ...counts, stage, remainingMs } };
}

/** What share came back, for a check while messages are being sent; null without a canary. */
export async function readShare(
  db: Queryable,
  redriveId: string,
): Promise<(Readonly<{ canary: Canary }> & Pick<StageView, 'sample' | 'returned'>) | null> {
  const [row] = await db.query<Omit<StageRow, 'remainingMs'>>(sql`
    SELECT r.options->'canary' AS canary, COALESCE(r.stage, 1) AS stage
    FROM dlq.redrives r WHERE r.id = ${redriveId}`);
  if (row === undefined || row.canary === null) return null;
  const { canary, stage } = row;
  const counts = isRest(canary, stage) ? await latestShare(db, redriveId) : await countStaged(db, redriveId);
  return { canary, ...counts };
}

const isAcked: Sql = sql`i.outcome IN ('published', 'came_back')`;
/** It came back before the last resume. */
const isSettledBefore: Sql = sql`COALESCE(i.came_back_at < r.counted_from, false)`;

/** All stages so far together: their bounds are cumulative. */
async function countStaged(db: Queryable, redriveId: string): Promise<Counts> {
  const count = (where: Sql): Sql => sql`(count(*) FILTER (WHERE ${where}))::int`;
  const [row] = await db.query<Counts>(sql`
    SELECT ${count(sql`i.outcome IS NULL`)} AS open, ${count(isAcked)} AS acked,
           ${count(sql`(i.outcome IS NULL OR ${isAcked}) AND NOT ${isSettledBefore}`)} AS sample,
           ${count(sql`i.outcome = 'came_back' AND NOT ${isSettledBefore}`)} AS returned,
           EXISTS (SELECT 1 FROM dlq.redrive_items i
                   WHERE i.redrive_id = ${redriveId} AND ${isWaiting} AND i.stage IS NULL) AS "hasUndrawn"
    FROM dlq.redrives r
    JOIN dlq.redrive_items i ON i.redrive_id = r.id AND i.stage IS NOT NULL
    WHERE r.id = ${redriveId}`);
  return row ?? { open: 0, acked: 0, sample: 0, returned: 0, hasUndrawn: false };
}

/** A window begins when every message has an outcome, so it is not asked again: at the end all of them are read. */
async function countRest(
  db: Queryable,
  redriveId: string,
  { isWatched }: Readonly<{ isWatched: boolean }>,
): Promise<Counts> {
  const [row] = await db.query<Readonly<{ isOpen: boolean; isAcked: boolean }>>(sql`
    SELECT NOT ${isWatched} AND EXISTS (SELECT 1 FROM dlq.redrive_items i
                   WHERE i.redrive_id = ${redriveId} AND i.outcome IS NULL) AS "isOpen",
           EXISTS (SELECT 1 FROM dlq.redrive_items i
                   WHERE i.redrive_id = ${redriveId} AND i.stage IS NOT NULL AND ${isAcked}) AS "isAcked"`);
  const share = await latestShare(db, redriveId);
  return { ...share, open: Number(row?.isOpen), acked: Number(row?.isAcked), hasUndrawn: false };
}

/**
 * The share of the latest messages that were acknowledged, and of those up to the message that came back last: what
 * was sent just now cannot have come back yet. The larger one counts.
 */
async function latestShare(
  db: Queryable,
  redriveId: string,
): Promise<Pick<StageView, 'sample' | 'returned'>> {
  const rows = await db.query<Pick<StageView, 'sample' | 'returned'>>(sql`
    SELECT share.sample, share.returned
    FROM dlq.redrives r
    CROSS JOIN LATERAL (
      SELECT 'infinity'::timestamptz AS at
      UNION ALL (
        SELECT i.settled_at FROM dlq.redrive_items i
        WHERE i.redrive_id = r.id AND i.came_back_at IS NOT NULL AND i.stage IS NOT NULL AND i.outcome = 'came_back'
        ORDER BY i.came_back_at DESC LIMIT 1)
    ) AS latest
    CROSS JOIN LATERAL (
      SELECT (count(*) FILTER (WHERE NOT i.is_before))::int AS sample,
             (count(*) FILTER (WHERE i.outcome = 'came_back' AND NOT i.is_before))::int AS returned
      FROM (
        SELECT i.outcome, ${isSettledBefore} AS is_before FROM dlq.redrive_items i
        WHERE i.redrive_id = r.id AND i.stage IS NOT NULL AND ${isAcked} AND i.settled_at <= latest.at
        ORDER BY i.settled_at DESC LIMIT ${latestCount}
      ) AS i
    ) AS share
    WHERE r.id = ${redriveId}`);
  const shareOf = ({ sample, returned }: (typeof rows)[number]): number => returned / Math.max(1, sample);
  return rows.toSorted((a, b) => shareOf(b) - shareOf(a))[0] ?? { sample: 0, returned: 0 };
}
