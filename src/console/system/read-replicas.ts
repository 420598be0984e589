import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';

export type ListedReplica = Readonly<{
  replicaId: string;
  roles: readonly string[];
  version: string;
  kafkaClusterId: string | null;
  startedAt: Date;
  seenAt: Date;
  /** Heard of within the last three heartbeats. */
  isAlive: boolean;
}>;

export type ListedLease = Readonly<{
  name: string;
  owner: string | null;
  until: Date | null;
  /** Somebody has it now; otherwise its work is not done. */
  isHeld: boolean;
}>;

const listed = 200;

/** Processes of the last hour, the newest first. */
export function readReplicas(db: Queryable): Promise<readonly ListedReplica[]> {
  return db.query<ListedReplica>(sql`
    SELECT replica_id AS "replicaId", roles, version, kafka_cluster_id AS "kafkaClusterId",
           started_at AS "startedAt", seen_at AS "seenAt",
           seen_at > clock_timestamp() - interval '15 seconds' AS "isAlive"
    FROM platform.replicas ORDER BY started_at DESC, replica_id LIMIT ${listed}`);
}

/** What one process does at a time, by name. */
export function readLeases(db: Queryable): Promise<readonly ListedLease[]> {
  return db.query<ListedLease>(sql`
    SELECT name, lease_owner AS owner, lease_until AS until,
           COALESCE(lease_owner IS NOT NULL AND lease_until > clock_timestamp(), false) AS "isHeld"
    FROM platform.leases ORDER BY name LIMIT ${listed}`);
}
