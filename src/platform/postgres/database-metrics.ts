import type { Service } from '../../kernel/service.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Queryable, ServerDatabase } from './database.ts';
import { sql } from './sql.ts';

/** The connections of this process, read when the metrics are rendered. */
export function exportPool(metrics: Metrics, db: Pick<ServerDatabase, 'connections'>): void {
  metrics.gauge({
    name: 'db_pool_connections',
    help: 'Connections of the pool of this process, by state.',
    labelNames: ['state'],
    collect() {
      const { total, idle } = db.connections();
      this.set({ state: 'idle' }, idle);
      this.set({ state: 'busy' }, total - idle);
    },
  });
  metrics.gauge({
    name: 'db_pool_waiting',
    help: 'Statements and transactions of this process that wait for a connection.',
    collect() {
      this.set(db.connections().waiting);
    },
  });
  metrics.gauge({
    name: 'db_pool_max_connections',
    help: 'Limit on the connections of the pool, `database.max_open_conns`.',
    collect() {
      this.set(db.connections().max);
    },
  });
}

/** Sizes of tables change slowly, and reading them costs more than a scrape. */
const lookEveryMs = 60_000;

/**
 * Exports when the password of the role expires (`VALID UNTIL`), as that of a role that Vault made does. There is no
 * series for a role without an end.
 */
export function createCredentialWatch(
  db: Queryable,
  { metrics, ...loop }: Readonly<{ metrics: Metrics; beat: () => void; onError: (error: unknown) => void }>,
): Service {
  const expiry = metrics.gauge({
    name: 'db_credential_expiry_timestamp_seconds',
    help: 'When the password of the role of this process expires; absent if it does not.',
  });
  expiry.remove();
  return createLoop({
    ...loop,
    name: 'database credentials',
    everyMs: lookEveryMs,
    async run() {
      const endsAt = await readExpiry(db);
      if (endsAt === null) expiry.remove();
      else expiry.set(endsAt);
    },
  });
}

/** Seconds since 1970. */
async function readExpiry(db: Queryable): Promise<number | null> {
  const [row] = await db.query<{ at: number | null }>(sql`
    SELECT date_part('epoch', rolvaliduntil) AS at FROM pg_catalog.pg_roles
    WHERE rolname = session_user AND isfinite(rolvaliduntil)`);
  return row?.at ?? null;
}
