import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createKafkaBroker } from '../../../src/platform/broker/kafka/kafka-broker.ts';
import type { Broker, Header } from '../../../src/platform/broker/port.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { createTestDatabase } from '../../support/database.ts';
import type { FaultPlan } from './faults.ts';
import { startReplica, type Replica } from './start-replica.ts';
import { until } from './until.ts';

/** A dead-letter topic and the topic it belongs to, a database, and the replicas that work on them. */
export type Scene = Readonly<{
  db: Database;
  broker: Broker;
  dlqTopic: string;
  originalTopic: string;
  start(plan?: FaultPlan, env?: Readonly<Record<string, string>>): Promise<Replica>;
  /** Publishes one dead letter per id and keeps account of them. */
  fail(
    ids: readonly string[],
    more?: Readonly<{ headers?: readonly Header[]; padding?: number }>,
  ): Promise<void>;
  /** Every id that was published as a dead letter. */
  published(): readonly string[];
  count(status?: Status): Promise<number>;
  /** Resolves when every published dead letter has been taken. */
  taken(withinMs?: number): Promise<void>;
  close(): Promise<void>;
}>;

export type Status = 'PENDING' | 'RETRYING' | 'RESOLVED' | 'DEAD';

export type SceneOptions = Readonly<{
  partitions?: number;
  brokers?: string;
  /** The database of a server that the test has started itself. */
  database?: Readonly<{ url: string; db: Database }>;
}>;

export async function openScene({ partitions = 1, brokers, database }: SceneOptions = {}): Promise<Scene> {
  const name = `chaos-${randomBytes(5).toString('hex')}`;
  const [dlqTopic, originalTopic] = [`${name}.dlq.v1`, `${name}.v1`];
  const kafka = brokers ?? process.env['KAFKA_BROKERS'] ?? '';
  const broker = createKafkaBroker({
    brokers: kafka.split(','),
    securityProtocol: 'PLAINTEXT',
    clientId: 'redrive-chaos',
  });
  await broker.createTopic(dlqTopic, partitions);
  await broker.createTopic(originalTopic, partitions);
  const own = database === undefined ? await createTestDatabase() : null;
  const { url, db } = database ?? own ?? assert.fail();
  const env = {
    DATABASE_URL: url,
    KAFKA_BROKERS: kafka,
    KAFKA_DLQ_TOPIC_PATTERN: dlqTopic,
    KAFKA_CONSUMER_GROUP: name,
  };
  const replicas: Replica[] = [];
  const published: string[] = [];

  const count = async (status?: Status): Promise<number> => {
    const rows = await db.query<{ count: bigint }>(sql`
      SELECT count(*) AS count FROM dlq.dlq_messages
      WHERE source_topic = ${dlqTopic} AND (${status ?? null}::text IS NULL OR status = ${status ?? null})`);
    return Number(rows[0]?.count ?? 0n);
  };

  return {
    db,
    broker,
    dlqTopic,
    originalTopic,
    published: () => published,
    count,
    async start(plan, more = {}) {
      const replica = await startReplica({ ...env, ...more }, plan);
      replicas.push(replica);
      return replica;
    },
    async fail(ids, { headers = [], padding = 0 } = {}) {
      const records = ids.map((id) => ({
        topic: dlqTopic,
        key: Buffer.from(id),
        value: Buffer.from(JSON.stringify({ id, padding: 'x'.repeat(padding) })),
        headers: [{ key: Buffer.from('error'), value: Buffer.from('it failed') }, ...headers],
      }));
      const results = await broker.publish(records, { timeoutMs: 10_000 });
      for (const result of results) assert.equal(result.result, 'acked');
      published.push(...ids);
    },
    async taken(withinMs = 120_000) {
      await until(
        `all ${published.length} dead letters are stored`,
        async () => (await takenOffsets(db, dlqTopic)) >= published.length || null,
        { withinMs, explain: () => replicas.map((replica) => replica.log()).join('\n--\n') },
      );
    },
    async close() {
      await Promise.all(replicas.map((replica) => replica.kill()));
      await own?.drop();
      if (brokers === undefined)
        for (const topic of [dlqTopic, originalTopic]) await broker.deleteTopic(topic);
      await broker.close();
    },
  };
}

/** How many offsets lie behind the positions, whatever became of their records. */
async function takenOffsets(db: Database, topic: string): Promise<number> {
  const rows = await db.query<{ taken: bigint }>(sql`
    SELECT COALESCE(sum(high_offset), 0)::bigint AS taken FROM dlq.source_partitions WHERE topic = ${topic}`);
  return Number(rows[0]?.taken ?? 0n);
}

export const idsFrom = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
