import { createLoop } from '../../kernel/loop.ts';
import type { Service } from '../../kernel/service.ts';
import type { Queryable } from '../postgres/database.ts';
import { sql, type Sql } from '../postgres/sql.ts';

/** Keeps a heartbeat row per process, so that replicas know of each other. */
export type Replica = Service &
  Readonly<{
    /** Called when the broker has answered; written at once. */
    setKafkaCluster(clusterId: string): Promise<void>;
    /** Processes with the role workers, at the last heartbeat; at least 1. */
    workers(): number;
  }>;

/** Cheap enough for hundreds of replicas: one row each. */
const heartbeatMs = 5000;
/** Rows of processes that crashed are deleted with one heartbeat in this many. */
const beatsPerCleanUp = 60;

export function createReplica(
  db: Queryable,
  options: Readonly<{
    replicaId: string;
    roles: readonly string[];
    version: string;
    beat?: () => void;
    onError: (error: unknown) => void;
  }>,
): Replica {
  let clusterId: string | null = null;
  let workers = 1;
  let beats = 0;
  const beat = async (): Promise<void> => {
    workers = Math.max(1, await upsertReplica(db, { ...options, clusterId }));
    if (beats % beatsPerCleanUp === 0) await deleteStaleReplicas(db);
    beats += 1;
  };
  const loop = createLoop({
    name: 'replica heartbeat',
    everyMs: heartbeatMs,
    run: beat,
    beat: options.beat,
    onError: options.onError,
  });

  return {
    ...loop,
    workers: () => workers,
    async setKafkaCluster(id) {
      if (clusterId === id) return;
      clusterId = id;
      await beat();
    },
    async stop(deadline) {
      await loop.stop(deadline);
      await db
        .query(sql`DELETE FROM platform.replicas WHERE replica_id = ${options.replicaId}`)
        .catch(options.onError);
    },
  };
}

/** Three beats may be missed. */
const isFresh: Sql = sql`seen_at > clock_timestamp() - interval '15 seconds'`;

/** Processes with this role (on this Kafka cluster) whose heartbeat is fresh. */
export async function countReplicas(
  db: Queryable,
  { role, clusterId }: Readonly<{ role: string; clusterId?: string }>,
): Promise<number> {
  const onCluster = clusterId === undefined ? sql`true` : sql`kafka_cluster_id = ${clusterId}`;
  const rows = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM platform.replicas
    WHERE ${role} = ANY(roles) AND ${onCluster} AND ${isFresh}`);
  return Number(rows[0]?.count ?? 0n);
}

/** Returns how many processes have the role workers. */
async function upsertReplica(
  db: Queryable,
  row: Readonly<{ replicaId: string; roles: readonly string[]; version: string; clusterId: string | null }>,
): Promise<number> {
  const [counted] = await db.query<{ workers: bigint }>(sql`
    INSERT INTO platform.replicas (replica_id, roles, kafka_cluster_id, version)
    VALUES (${row.replicaId}, ${row.roles}, ${row.clusterId}, ${row.version})
    ON CONFLICT (replica_id) DO UPDATE
    SET seen_at = clock_timestamp(), kafka_cluster_id = EXCLUDED.kafka_cluster_id, roles = EXCLUDED.roles
    RETURNING (SELECT count(*) FROM platform.replicas WHERE 'workers' = ANY(roles) AND ${isFresh}) AS workers`);
  return Number(counted?.workers ?? 0n);
}

async function deleteStaleReplicas(db: Queryable): Promise<void> {
  await db.query(sql`DELETE FROM platform.replicas WHERE seen_at < clock_timestamp() - interval '1 hour'`);
}
