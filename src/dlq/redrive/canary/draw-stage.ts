import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { isWaiting } from '../planned/redrives-table.ts';

export type Draw = Readonly<{
  redriveId: string;
  count: number;
  /** False if the order of a key is not kept. */
  hasOrder: boolean;
}>;

/**
 * Chooses the messages of a stage: the heads of keys first, and of these one of each cause (target and fingerprint) in
 * turn, beginning with the causes that the stages before have tested least. Of a key the drawn messages are always the
 * first ones. It sorts up to a million items and takes no lock: only the process that holds the lease draws, and
 * `storeDraw` takes those that still wait.
 */
export async function chooseDraw(
  db: Database,
  { redriveId, count, hasOrder }: Draw,
): Promise<readonly number[]> {
  const alone = sql`int4send(i.position)`;
  const orderKey = hasOrder ? sql`COALESCE(i.key_hash, ${alone})` : alone;
  return db.transaction(
    async (tx) => {
      await tx.query(sql`SET LOCAL statement_timeout = '10min'`);
      await tx.query(sql`SET LOCAL work_mem = '128MB'`);
      const rows = await tx.query<{ position: number }>(sql`
        WITH waiting AS (
          SELECT i.position, i.target, i.fingerprint,
                 row_number() OVER (PARTITION BY ${orderKey}, i.target COLLATE "C" ORDER BY i.position) AS place
          FROM dlq.redrive_items i
          WHERE i.redrive_id = ${redriveId} AND ${isWaiting} AND i.stage IS NULL
        ), causes AS (
          SELECT i.target, i.fingerprint, count(*) AS drawn FROM dlq.redrive_items i
          WHERE i.redrive_id = ${redriveId} AND i.stage IS NOT NULL GROUP BY 1, 2
        ), turns AS (
          SELECT w.position, w.place,
                 COALESCE(c.drawn, 0)
                   + row_number() OVER (
                     PARTITION BY w.place, w.fingerprint COLLATE "C", w.target COLLATE "C" ORDER BY w.position) AS turn
          FROM waiting w
          LEFT JOIN causes c ON c.target = w.target AND c.fingerprint IS NOT DISTINCT FROM w.fingerprint
        )
        SELECT position FROM turns ORDER BY place, turn, position LIMIT ${count}`);
      return rows.map(({ position }) => position);
    },
    { isPatient: true },
  );
}

/** Stores the draw with the items, so that a process that takes over sends the same messages. */
export async function storeDraw(
  tx: Queryable,
  {
    redriveId,
    stage,
    positions,
  }: Readonly<{ redriveId: string; stage: number; positions: readonly number[] }>,
): Promise<void> {
  await tx.query(sql`
    UPDATE dlq.redrive_items i SET stage = ${stage}
    WHERE i.redrive_id = ${redriveId} AND i.position = ANY(${positions}::int[]) AND ${isWaiting} AND i.stage IS NULL`);
  await tx.query(sql`
    UPDATE dlq.redrives r
    SET stage = ${stage}, watched_targets = COALESCE(r.watched_targets, ARRAY(
      SELECT DISTINCT i.target FROM dlq.redrive_items i WHERE i.redrive_id = ${redriveId}))
    WHERE r.id = ${redriveId}`);
}
