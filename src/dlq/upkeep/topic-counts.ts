import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';

/** Merges the rows of `dlq.topic_counts` into one per topic, status and minute, and the changes of groups into counts. */
export async function compactCounts(db: Queryable): Promise<void> {
  await db.query(sql`SELECT dlq.compact_topic_counts(), dlq.fold_group_changes()`);
}

export type CountCorrection = Readonly<{ topic: string; status: string; counted: bigint; actual: bigint }>;

/**
 * Counts the messages and corrects the running counts where they differ. One statement reads both, so both are of the
 * same snapshot, and messages written meanwhile bring their own counts. The lock keeps two recounts from correcting
 * the same difference twice.
 */
export async function recountMessages(db: Database): Promise<readonly CountCorrection[]> {
  return db.transaction(correctCounts, { isPatient: true });
}

async function correctCounts(tx: Queryable): Promise<readonly CountCorrection[]> {
  await tx.query(sql`SET LOCAL statement_timeout = 0`);
  await tx.query(sql`SELECT pg_advisory_xact_lock(hashtextextended('dlq.recount', 0))`);
  return tx.query<CountCorrection>(sql`
    WITH actual AS (
      SELECT original_topic, status, count(*) AS messages FROM dlq.dlq_messages GROUP BY original_topic, status
    ), counted AS (
      SELECT original_topic, status, sum(messages)::bigint AS messages FROM dlq.topic_counts
      GROUP BY original_topic, status
    ), compared AS (
      SELECT original_topic, status, COALESCE(counted.messages, 0) AS counted, COALESCE(actual.messages, 0) AS actual
      FROM actual FULL JOIN counted USING (original_topic, status)
    ), corrected AS (
      INSERT INTO dlq.topic_counts (original_topic, status, minute, messages, arrived)
      SELECT original_topic, status, 'epoch'::timestamptz, actual - counted, 0 FROM compared WHERE actual <> counted
    )
    SELECT original_topic AS topic, status, counted, actual FROM compared
    WHERE actual <> counted
    ORDER BY original_topic, status`);
}
