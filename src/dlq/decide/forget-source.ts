import type { Act } from '../../kernel/audit/act.ts';
import { AppError } from '../../kernel/errors.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { findSource } from '../sources.ts';

/** Removes a partition from the lists if its topic is deleted or nobody reads its cluster. */
export async function forgetSource(
  db: Database,
  source: Readonly<{ topic: string; partition: number; actor: string; reason: string; act: Act }>,
): Promise<void> {
  if (await db.transaction((tx) => forget(tx, source))) return;
  await findSource(db, source);
  throw new AppError(
    'SYS_DLQ_CONFLICT',
    'conflict',
    `source cannot be forgotten: ${source.topic}/${source.partition} exists and its cluster is being read`,
  );
}

async function forget(
  tx: Queryable,
  { topic, partition, actor, reason, act }: Parameters<typeof forgetSource>[1],
): Promise<boolean> {
  const forgotten = await tx.query(sql`
    UPDATE dlq.source_partitions p
    SET forgotten = jsonb_build_object('at', clock_timestamp(), 'actor', ${actor}::text, 'reason', ${reason}::text),
        lease_owner = NULL, lease_until = NULL, lease_epoch = nextval('platform.lease_epochs')
    WHERE p.topic = ${topic} AND p.partition = ${partition} AND p.forgotten IS NULL AND (p.gone OR NOT EXISTS (
      SELECT 1 FROM platform.replicas r
      WHERE r.kafka_cluster_id = p.cluster_id AND r.seen_at > clock_timestamp() - interval '15 seconds'))
    RETURNING p.id`);
  if (forgotten.length === 0) return false;
  await recordAct(tx, act, {
    resource: `dlq/sources/${topic}/${partition}`,
    names: { topics: [topic] },
    detail: { change: 'forget' },
  });
  return true;
}
