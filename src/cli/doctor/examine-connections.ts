import type { Config } from '../../config/config.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { ok, problem, warning, type Finding } from './finding.ts';

export type ConnectionFacts = Readonly<{
  /** Running now, at least 1. */
  replicas: number;
  /** Maximum size of a replica's pool. */
  poolSize: number;
  /** Of each replica besides its pool: one for LISTEN, and two past a pooler. */
  extra: number;
  maxConnections: number;
  /** Reserved for superusers. */
  reserved: number;
  /** Connections of other applications now. */
  others: number;
}>;

export async function examineConnections(db: Queryable, config: Config): Promise<Finding> {
  const rows = await db.query<Pick<ConnectionFacts, 'maxConnections' | 'reserved' | 'others'>>(sql`
    SELECT current_setting('max_connections')::int AS "maxConnections",
           current_setting('superuser_reserved_connections')::int
             + coalesce(current_setting('reserved_connections', true)::int, 0) AS reserved,
           (SELECT count(*)::int FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND application_name <> ${config.app.name}) AS others`);
  return judgeConnections({
    maxConnections: rows[0]?.maxConnections ?? 0,
    reserved: rows[0]?.reserved ?? 0,
    others: rows[0]?.others ?? 0,
    replicas: Math.max(1, await freshReplicas(db)),
    poolSize: config.database.maxOpenConns,
    extra: (config.database.wake === 'listen' ? 1 : 0) + (hasDirect(config) ? 2 : 0),
  });
}

/** Compares the maximum of all replicas, not their current use. */
export function judgeConnections(facts: ConnectionFacts): Finding {
  const { replicas, poolSize, extra, maxConnections, reserved, others } = facts;
  const needed = replicas * (poolSize + extra);
  const usable = maxConnections - reserved;
  const found =
    `${replicas} ${replicas === 1 ? 'replica' : 'replicas'} with ${poolSize}${extra > 0 ? ` + ${extra}` : ''} connections need ${needed}; ` +
    `PostgreSQL allows ${usable} (max_connections ${maxConnections}, ${reserved} reserved), others use ${others}`;
  const left = usable - others;
  if (needed <= left) return ok('connections', found);
  const fitting = Math.floor(left / replicas) - extra;
  const lower = fitting >= 1 ? `lower database.max_open_conns to ${fitting}, or ` : '';
  const advice = `${lower}raise max_connections to at least ${needed + reserved + others}`;
  return needed > usable ? problem('connections', found, advice) : warning('connections', found, advice);
}

function hasDirect({ database }: Config): boolean {
  return database.mode === 'server' && database.direct !== undefined;
}

async function freshReplicas(db: Queryable): Promise<number> {
  const known = await db.query<{ exists: boolean }>(sql`
    SELECT to_regclass('platform.replicas') IS NOT NULL AS exists`);
  if (known[0]?.exists !== true) return 0;
  const rows = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM platform.replicas
    WHERE seen_at > clock_timestamp() - interval '15 seconds'`);
  return Number(rows[0]?.count ?? 0n);
}
