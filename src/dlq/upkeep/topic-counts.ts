import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';

/** Merges the rows of `dlq.topic_counts` into one per topic, status and minute, and the changes of groups into counts. */
export async function compactCounts(db: Queryable): Promise<void> {
  await db.query(sql`SELECT dlq.compact_topic_counts(), dlq.fold_group_changes()`);
}

export type CountCorrection = Readonly<{ topic: string; status: string; counted: bigint; actual: bigint }>;

export type GroupCorrection = CountCorrection &
  Readonly<{ fingerprint: string; consumerGroup: string | null }>;

export type CountCorrections = Readonly<{
  topics: readonly CountCorrection[];
  groups: readonly GroupCorrection[];
}>;

/**
 * Counts the messages and corrects the running counts where they differ. One statement reads both, so both are of the
 * same snapshot, and messages written meanwhile bring their own counts. The lock keeps two recounts from correcting
 * the same difference twice.
 */
export async function recountMessages(db: Database): Promise<CountCorrections> {
  return db.transaction(
    async (tx) => ({ topics: await correctTopics(tx), groups: await correctGroups(tx) }),
    { isPatient: true },
  );
}

async function correctTopics(tx: Queryable): Promise<readonly CountCorrection[]> {
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

/** Also adds the fingerprints that have messages and no row. */
async function correctGroups(tx: Queryable): Promise<readonly GroupCorrection[]> {
  return tx.query<GroupCorrection>(sql`
    WITH actual AS (
      SELECT fingerprint, left(original_topic, 249) AS original_topic, left(COALESCE(consumer_group, ''), 255) AS consumer_group,
             status::text AS status, count(*) AS messages, min(created_at) AS first_at, max(created_at) AS last_at
      FROM dlq.dlq_messages WHERE fingerprint IS NOT NULL
      GROUP BY 1, 2, 3, 4
    ), counted AS (
      SELECT fingerprint, original_topic, consumer_group, status, sum(messages)::bigint AS messages
      FROM dlq.group_figures GROUP BY 1, 2, 3, 4
    ), compared AS (
      SELECT fingerprint, original_topic, consumer_group, status, actual.first_at, actual.last_at,
             COALESCE(counted.messages, 0) AS counted, COALESCE(actual.messages, 0) AS actual
      FROM actual FULL JOIN counted USING (fingerprint, original_topic, consumer_group, status)
    ), corrected AS (
      INSERT INTO dlq.group_changes (fingerprint, original_topic, consumer_group, status, hour, messages, arrived)
      SELECT fingerprint, original_topic, consumer_group, status, 'epoch'::timestamptz, actual - counted, 0
      FROM compared WHERE actual <> counted
    ), named AS (
      INSERT INTO dlq.fingerprints (fingerprint, first_at, last_at)
      SELECT fingerprint, LEAST(min(first_at), clock_timestamp()), LEAST(max(last_at), clock_timestamp())
      FROM compared WHERE actual > 0
      GROUP BY fingerprint ORDER BY fingerprint
      ON CONFLICT DO NOTHING
    )
    SELECT fingerprint, original_topic AS topic, NULLIF(consumer_group, '') AS "consumerGroup", status, counted, actual
    FROM compared WHERE actual <> counted
    ORDER BY 1, 2, 3, 4`);
}
