import { formatTimestamp } from '../../kernel/timestamp.ts';
import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { dateOrNull, epochMs } from '../instant.ts';
import { openTransactionSince } from '../sources.ts';
import type { DiscoveryTrouble } from './partition-reader.ts';

export type IngestCheckDeps = Readonly<{
  db: Queryable;
  openTransactionAlertMs: number;
  discoveryTrouble: () => DiscoveryTrouble;
}>;

/**
 * Degraded while dead letters are not read: a partition is stopped, may not be read, or is blocked by an open
 * transaction; or discovery fails. Other partitions are still read.
 */
export function ingestCheck(deps: IngestCheckDeps): HealthCheck {
  return {
    name: 'dlq_ingest',
    critical: false,
    async check() {
      const { first, count } = await findTroubles(deps.db, deps.openTransactionAlertMs);
      const { failure, denied } = deps.discoveryTrouble();
      const messages = [
        ...(failure === null ? [] : [`failed to discover dead-letter topics: ${failure}`]),
        ...(denied.length === 0 ? [] : [`no right to describe ${denied.join(', ')}`]),
        ...first.map(describe),
        ...(count > first.length ? [`${count - first.length} more partitions: see redrive dlq sources`] : []),
      ];
      return messages.length === 0
        ? { status: 'healthy' }
        : { status: 'degraded', message: messages.join('; ') };
    },
  };
}

type Trouble = Readonly<{
  topic: string;
  partition: number;
  kind: 'stopped' | 'denied' | 'blocked';
  lastError: string | null;
  since: number | null;
}>;

const maxListed = 3;

async function findTroubles(
  db: Queryable,
  alertMs: number,
): Promise<Readonly<{ first: readonly Trouble[]; count: number }>> {
  const first = await db.query<Trouble & { count: bigint }>(sql`
    SELECT p.topic, p.partition, p.last_error AS "lastError", ${epochMs(openTransactionSince)} AS since,
           CASE WHEN p.stopped THEN 'stopped' WHEN p.denied THEN 'denied' ELSE 'blocked' END AS kind,
           count(*) OVER () AS count
    FROM dlq.source_partitions p
    WHERE NOT p.gone AND p.forgotten IS NULL AND (p.stopped OR p.denied OR
      COALESCE(${openTransactionSince} < clock_timestamp() - ${alertMs}::float8 * interval '1 ms', false))
    ORDER BY p.topic, p.partition, p.id
    LIMIT ${maxListed}`);
  return { first, count: Number(first[0]?.count ?? 0n) };
}

function describe({ topic, partition, kind, lastError, since }: Trouble): string {
  const name = `${topic}/${partition}`;
  switch (kind) {
    case 'stopped':
      return `${name} is stopped: ${lastError ?? 'no error noted'}`;
    case 'denied':
      return `no right to read ${name}: ${lastError ?? 'no error noted'}`;
    case 'blocked': {
      const date = dateOrNull(since);
      return `an open transaction has blocked ${name}${date === null ? '' : ` since ${formatTimestamp(date)}`}`;
    }
  }
}
