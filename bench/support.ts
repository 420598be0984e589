import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../src/config/config.ts';
import { migrationSources, startSystem, type System, type SystemOptions } from '../src/compose.ts';
import { createKafkaBroker } from '../src/platform/broker/kafka/kafka-broker.ts';
import type { Broker, OutgoingRecord } from '../src/platform/broker/port.ts';
import { startEmbeddedPostgres } from '../src/platform/embedded/embedded-postgres.ts';
import type { Database } from '../src/platform/postgres/database.ts';
import { migrateUp } from '../src/platform/postgres/migrate.ts';
import { createLogger } from '../src/platform/telemetry/logger.ts';
import { connectTo } from '../tests/support/database.ts';
import { startKafka } from '../tools/kafka/start-kafka.ts';

/**
 * What every bench needs: a real PostgreSQL 17 with its durability on and a real Kafka, both of its own, on
 * this machine. Machines differ and are noisy, so a bench prints what it measures beside its floor, from the
 * same run; only the ratios mean anything.
 */
export type Ground = Readonly<{
  url: string;
  db: Database;
  brokers: string;
  broker: Broker;
  startSystem(env?: Readonly<Record<string, string>>, wrap?: SystemOptions['wrap']): Promise<System>;
  stop(): Promise<void>;
}>;

const noSecrets = join(tmpdir(), 'redrive-bench-has-no-secrets');

type Settings = Readonly<Record<string, string>>;

/** Without Kafka. `settings` are those of PostgreSQL that a bench needs besides. */
export async function openPostgres(settings: Settings = {}): Promise<Pick<Ground, 'url' | 'db' | 'stop'>> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-bench-'));
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    settings: { shared_buffers: '512MB', max_wal_size: '4GB', ...settings },
  });
  const db = connectTo(postgres.url);
  await migrateUp(db, migrationSources);
  return {
    url: postgres.url,
    db,
    async stop() {
      await db.end();
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
      await rm(postgres.folder, { recursive: true, force: true });
    },
  };
}

export async function openGround(settings: Settings = {}): Promise<Ground> {
  const postgres = await openPostgres(settings);
  const kafka = await startKafka();
  const broker = createKafkaBroker({
    brokers: kafka.brokers.split(','),
    clientId: 'bench',
    securityProtocol: 'PLAINTEXT',
  });
  await untilWritable(broker);
  return {
    url: postgres.url,
    db: postgres.db,
    brokers: kafka.brokers,
    broker,
    startSystem: (env = {}, wrap = {}) =>
      startSystem(
        loadConfig({
          env: { DATABASE_URL: postgres.url, KAFKA_BROKERS: kafka.brokers, PORT: '0', ...env },
          secretsDir: noSecrets,
        }),
        {
          wrap,
          onPortTaken: 'fail',
          logger: createLogger({ service: 'bench', version: '0', environment: 'bench', level: 'error' }),
        },
      ),
    async stop() {
      await broker.close();
      await kafka.stop();
      await postgres.stop();
    },
  };
}

/** A 500-byte JSON order, with its number in it. */
export function orderValue(i: number): Buffer {
  const head = `{"order_id":"${String(i).padStart(10, '0')}","customer":"c-${i % 997}","qty":${(i % 9) + 1},"note":"`;
  return Buffer.from(`${head}${'x'.repeat(500 - head.length - 2)}"}`);
}

/** Publishes and fails loudly if anything is not acknowledged. */
export async function publishAll(broker: Broker, records: readonly OutgoingRecord[]): Promise<void> {
  const chunk = 5000;
  for (let at = 0; at < records.length; at += chunk) {
    const results = await broker.publish(records.slice(at, at + chunk), { timeoutMs: 30_000 });
    const bad = results.find(({ result }) => result !== 'acked');
    if (bad !== undefined) throw new Error(`not published: ${JSON.stringify(bad)}`);
  }
}

/** A broker that has just started answers before it can take idempotent records. */
async function untilWritable(broker: Broker): Promise<void> {
  await broker.createTopic('warm-up', 1);
  const records = [{ topic: 'warm-up', key: null, value: null, headers: [] }];
  await until(
    async () => (await broker.publish(records, { timeoutMs: 5000 }))[0]?.result === 'acked',
    30_000,
  );
}

/** Seconds that the work took. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1000;
}

export async function until(condition: () => Promise<boolean>, timeoutMs = 300_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('the bench did not finish in time');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export type Line = Readonly<{ name: string; perSecond: number }>;

/** Prints each line with its share of the first, which is the floor. */
export function printTable(title: string, lines: readonly Line[]): void {
  const floor = lines[0]?.perSecond ?? 1;
  process.stdout.write(`\n${title} (Node ${process.version}, ${cpus().length} cores)\n`);
  for (const { name, perSecond } of lines)
    process.stdout.write(
      `  ${name.padEnd(44)} ${Math.round(perSecond).toLocaleString('en').padStart(10)} /s   ${(perSecond / floor).toFixed(2)} of the floor\n`,
    );
}
