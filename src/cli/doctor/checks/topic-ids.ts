import type { Queryable } from '../../../platform/postgres/database.ts';
import type { PartitionInfo } from '../../../platform/broker/port.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { ok, skipped, warning, type Finding } from '../finding.ts';

/** A topic that was deleted and made again is another topic: its old positions and arrivals do not belong to it. */
export async function examineTopicIds(
  db: Queryable,
  clusterId: string,
  partitions: readonly PartitionInfo[],
): Promise<Finding> {
  const [known] = await db.query<{ exists: boolean }>(
    sql`SELECT to_regclass('dlq.source_partitions') IS NOT NULL AS exists`,
  );
  if (known?.exists !== true) return skipped('topic_ids', 'not checked: the schema does not exist yet');
  const now = new Map(partitions.map(({ topic, topicId }) => [topic, topicId]));
  const read = await db.query<{ topic: string; topicId: string }>(sql`
    SELECT DISTINCT topic, topic_id::text AS "topicId" FROM dlq.source_partitions
    WHERE cluster_id = ${clusterId} AND NOT gone AND topic = ANY (${[...now.keys()]}::text[])`);
  const changed = read.filter(({ topic, topicId }) => now.get(topic) !== topicId).map(({ topic }) => topic);
  if (changed.length === 0) return ok('topic_ids', 'as they were read');
  return warning(
    'topic_ids',
    `deleted and made again since they were read: ${[...new Set(changed)].join(', ')}`,
    'records of the old topic that were not read are lost; run `redrive dlq accounting`, then `redrive dlq forget`',
  );
}
