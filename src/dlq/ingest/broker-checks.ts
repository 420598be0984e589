import { messageOf } from '../../kernel/errors.ts';
import type { Broker } from '../../platform/broker/port.ts';
import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { ingestCheck } from './ingest-check.ts';
import type { PartitionReader } from './partition-reader.ts';

export type BrokerCheckDeps = Readonly<{
  db: Queryable;
  broker: Broker | null;
  openTransactionAlertMs: number;
}>;

export function createBrokerChecks(
  { db, broker, openTransactionAlertMs }: BrokerCheckDeps,
  reader: PartitionReader | null,
): readonly HealthCheck[] {
  if (broker === null) return [];
  const discoveryTrouble = () => reader?.discoveryTrouble() ?? { failure: null, denied: [] };
  return [brokerCheck(broker), ingestCheck({ db, openTransactionAlertMs, discoveryTrouble })];
}

/** Without a broker the service is degraded: stored messages can be read, and retries fail. */
function brokerCheck(broker: Broker): HealthCheck {
  return {
    name: 'kafka',
    critical: false,
    async check(signal) {
      try {
        await broker.clusterId(signal);
        return { status: 'healthy' };
      } catch (error) {
        return { status: 'degraded', message: messageOf(error) };
      }
    },
  };
}
