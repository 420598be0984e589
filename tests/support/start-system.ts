import { startSystem, type System, type SystemOptions } from '../../src/compose.ts';
import { loadConfig } from '../../src/config/config.ts';
import type { Broker } from '../../src/platform/broker/port.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { createApiClient, type ApiClient } from './api-client.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { databaseEnv } from './pooler.ts';

/** The whole system in this process, on a free port, with a database of its own. */
export type TestSystem = Readonly<{
  url: string;
  metricsUrl: string | null;
  api: ApiClient;
  routes: System['routes'];
  db: Database;
  database: TestDatabase;
  /** The system's own connection to its broker; null where Kafka is off. */
  broker: Broker | null;
  stop(): Promise<void>;
  /** Stops it, and drops its database unless that was the caller's. */
  drop(): Promise<void>;
}>;

export type TestSystemOptions = Readonly<{
  /** The broker: none, the local one of this process, or the real Kafka of the test run. */
  kafka?: 'off' | 'local' | 'real';
  env?: Readonly<Record<string, string>>;
  /** The folder that an agent mounts. */
  secretsDir?: string;
  /** Starts on a database that is there already, as a restart or a second replica does. */
  database?: TestDatabase;
  wrap?: SystemOptions['wrap'];
  /** For a test that reads the log. */
  logger?: SystemOptions['logger'];
}>;

const kafkaEnv = {
  off: (): Record<string, string> => ({ KAFKA_ENABLED: 'false' }),
  local: (): Record<string, string> => ({ KAFKA_LOCAL: 'true' }),
  real: (): Record<string, string> => ({ KAFKA_BROKERS: process.env['KAFKA_BROKERS'] ?? '' }),
};

export async function startTestSystem(options: TestSystemOptions = {}): Promise<TestSystem> {
  const database = options.database ?? (await createTestDatabase());
  const config = loadConfig({
    env: {
      ...(options.env?.['DATABASE_URL'] === undefined ? databaseEnv(database.url) : {}),
      PORT: '0',
      LOG_LEVEL: process.env['TEST_LOG_LEVEL'] ?? 'silent',
      KAFKA_DISCOVERY_INTERVAL: '1s',
      ...kafkaEnv[options.kafka ?? 'off'](),
      ...options.env,
    },
    secretsDir: options.secretsDir ?? '/nonexistent',
  });
  const system = await startSystem(config, {
    onPortTaken: 'fail',
    ...(options.wrap === undefined ? {} : { wrap: options.wrap }),
    ...(options.logger === undefined ? {} : { logger: options.logger }),
  });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= system.stop());
  return {
    url: system.url,
    metricsUrl: system.metricsUrl,
    api: createApiClient(system.url),
    routes: system.routes,
    db: database.db,
    database,
    broker: system.broker,
    stop,
    async drop() {
      await stop();
      if (options.database === undefined) await database.drop();
    },
  };
}
