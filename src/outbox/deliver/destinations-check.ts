import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { DestinationStatus } from '../destinations.ts';
import type { OpenDestination } from './senders/port.ts';

/** Degraded while orders cannot be sent: they wait, and the rest of the process works. */
export function destinationsCheck(
  db: Queryable,
  destinations: ReadonlyMap<string, OpenDestination>,
  statusOf: (destination: string) => DestinationStatus | null,
): HealthCheck {
  return {
    name: 'outbox',
    critical: false,
    async check() {
      const waiting = await destinationsWithWaiting(db);
      const problems = [
        problem(
          'orders wait for unknown destinations',
          waiting.filter((name) => !destinations.has(name)),
        ),
        problem(
          'orders wait for destinations without a broker',
          waiting.filter((name) => destinations.get(name)?.isDisabled === true),
        ),
        problem(
          'circuit open',
          [...destinations.keys()].filter((name) => statusOf(name)?.snapshot.circuit.state === 'open'),
        ),
      ].filter((message) => message !== null);
      return problems.length === 0
        ? { status: 'healthy' }
        : { status: 'degraded', message: problems.join('; ') };
    },
  };
}

function problem(what: string, names: readonly string[]): string | null {
  return names.length === 0 ? null : `${what}: ${names.slice(0, 5).join(', ')}`;
}

/** Destinations with waiting orders that are not blocked. It takes a few index lookups per destination. */
export async function destinationsWithWaiting(db: Queryable): Promise<readonly string[]> {
  const rows = await db.query<{ destination: string }>(sql`
    WITH RECURSIVE found AS (
      (SELECT destination FROM outbox.outbox_orders ORDER BY destination LIMIT 1)
      UNION ALL
      SELECT (SELECT o.destination FROM outbox.outbox_orders o
              WHERE o.destination > found.destination ORDER BY o.destination LIMIT 1)
      FROM found WHERE found.destination IS NOT NULL
    )
    SELECT destination FROM found
    WHERE destination IS NOT NULL AND (
      EXISTS (SELECT 1 FROM outbox.outbox_orders o WHERE o.destination = found.destination
              AND o.ordering_key IS NULL AND o.status IN ('queued', 'failed'))
      OR EXISTS (SELECT 1 FROM outbox.outbox_orders o WHERE o.destination = found.destination
                 AND o.ordering_key IS NOT NULL AND NOT o.held AND o.status IN ('queued', 'failed')))`);
  return rows.map(({ destination }) => destination);
}
