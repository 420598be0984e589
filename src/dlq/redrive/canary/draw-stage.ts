import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { isWaiting } from '../planned/redrives-table.ts';

export type Draw = Readonly<{
  redriveId: string;
  stage: number;
  count: number;
  /** False if the order of a key is not kept. */
  hasOrder: boolean;
}>;

/**
 * Draws the messages of a stage: the heads of keys first, and of these one of each cause (target and fingerprint) in
 * turn, beginning with the causes that the stages before have tested least. What was drawn is stored with the items,
 * so a process that takes over sends the same messages. Of a key the drawn messages are always the first ones.
 */
export async function drawStage(tx: Queryable, { redriveId, stage, count, hasOrder }: Draw): Promise<void> {
  const alone = sql`int4send(i.position)`;
  const orderKey = hasOrder ? sql`COALESCE(i.key_hash, ${alone})` : alone;
  await tx.query(sql`
    WITH waiting AS (
      SELECT i.position, i.target, i.fingerprint,
             row_number() OVER (PARTITION BY i.target, ${orderKey} ORDER BY i.position) AS place
      FROM dlq.redrive_items i
      WHERE i.redrive_id = ${redriveId} AND ${isWaiting} AND i.stage IS NULL
    ), causes AS (
      SELECT i.target, i.fingerprint, count(*) AS drawn FROM dlq.redrive_items i
      WHERE i.redrive_id = ${redriveId} AND i.stage IS NOT NULL GROUP BY 1, 2
    ), turns AS (
      SELECT w.position, w.place,
             COALESCE(c.drawn, 0)
               + row_number() OVER (PARTITION BY w.place, w.target, w.fingerprint ORDER BY w.position) AS turn
      FROM waiting w
      LEFT JOIN causes c ON c.target = w.target AND c.fingerprint IS NOT DISTINCT FROM w.fingerprint
    )
    UPDATE dlq.redrive_items i SET stage = ${stage}
    FROM (SELECT position FROM turns ORDER BY place, turn, position LIMIT ${count}) AS drawn
    WHERE i.redrive_id = ${redriveId} AND i.position = drawn.position`);
  await tx.query(sql`
    UPDATE dlq.redrives r
    SET stage = ${stage}, watched_targets = COALESCE(r.watched_targets, ARRAY(
      SELECT DISTINCT i.target FROM dlq.redrive_items i WHERE i.redrive_id = ${redriveId}))
    WHERE r.id = ${redriveId}`);
}
