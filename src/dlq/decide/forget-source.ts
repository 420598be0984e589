import { AppError } from '../../kernel/errors.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { findSource } from '../sources.ts';

/** Removes a partition from the lists if its topic is deleted or nobody reads its cluster. */
export async function forgetSource(
  db: Queryable,
  source: Readonly<{ topic: string; partition: number; actor: string; reason: string }>,
): Promise<void> {
  const { topic, partition, actor, reason } = source;
  const forgotten = await db.query(sql`
    UPDATE dlq.source_partitions p
    SET forgotten = jsonb_build_object('at', clock_timestamp(), 'actor', ${actor}::text, 'reason', ${reason}::text),
        lease_owner = NULL, lease_until = NULL, lease_epoch = nextval('platform.lease_epochs')
    WHERE p.topic = ${topic} AND p.partition = ${partition} AND p.forgotten IS NULL AND (p.gone OR NOT EXISTS (
      SELECT 1 FROM platform.replicas r
      WHERE r.kafka_cluster_id = p.cluster_id AND r.seen_at > clock_timestamp() - interval '15 seconds'))
    RETURNING p.id`);
  if (forgotten.length > 0) return;
  await findSource(db, source);
  throw new AppError(
    'SYS_DLQ_CONFLICT',
    'conflict',
    `source cannot be forgotten: ${topic}/${partition} exists and its cluster is being read`,
  );
}
