import { Producer } from '@platformatic/kafka';
import type { System } from '../src/compose.ts';
import type { Broker, OutgoingRecord } from '../src/platform/broker/port.ts';
import type { Database } from '../src/platform/postgres/database.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { openGround, orderValue, printTable, publishAll, timed, until, type Ground } from './support.ts';

/**
 * How fast a backlog is re-driven by retry-all: 500-byte records to 4 partitions.
 *   floor       the Kafka client's producer alone, idempotent, 500 records a send, 4 partitions in parallel
 *   one UPDATE  the least that a status per message can cost: one bare UPDATE of 1000 rows after another, on two
 *               connections, without claim, fencing or history
 *   database    the same retry-all with a broker that acknowledges at once: claims, settles and history alone
 *   seeds' way  one select, one publish, one update at a time, as the system that came before did
 *   ours        POST …/retry-all: claim with fencing, publish, settle, history of both transitions
 * node bench/dlq-retry.ts [records]
 */
const count = Number(process.argv[2] ?? 50_000);
const partitions = 4;
const topic = 'bench.v1';

const ground = await openGround();
try {
  await ground.broker.createTopic(topic, partitions);
  await ground.broker.createTopic('bench.dlq.v1', partitions);
  await fillBacklog(ground);

  const floor = await measureProducer(ground);
  const oneByOne = await measureOneByOne(ground, Math.min(count, 2000));
  const update = await measureUpdate(ground);
  const database = await measureDatabase(ground);
  const ours = await measureOurs(ground);
  printTable(`Re-driving ${count.toLocaleString('en')} messages`, [
    { name: 'floor: the producer alone', perSecond: floor },
    { name: "the seeds' way: one at a time", perSecond: oneByOne },
    { name: 'one bare UPDATE per message', perSecond: update },
    { name: 'the database alone: claim and settle', perSecond: database },
    { name: 'ours: retry-all', perSecond: ours },
  ]);
  const both = 1 / (1 / floor + 1 / database);
  process.stdout.write(
    `  ours against producer and database one after the other: ${(ours / both).toFixed(2)}\n`,
  );
  process.stdout.write(`  ours against the seeds' way: ${(ours / oneByOne).toFixed(1)} times\n`);
} finally {
  await ground.stop();
}

async function fillBacklog(ground: Ground): Promise<void> {
  const headers = [
    {
      key: Buffer.from('error'),
      value: Buffer.from('TimeoutError: no answer from warehouse within 5000 ms'),
    },
    { key: Buffer.from('original_topic'), value: Buffer.from(topic) },
    {
      key: Buffer.from('trace'),
      value: Buffer.from('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'),
    },
  ];
  const records = Array.from({ length: count }, (_, i): OutgoingRecord => {
    return { topic: 'bench.dlq.v1', key: Buffer.from(`c-${i % 997}`), value: orderValue(i), headers };
  });
  await publishAll(ground.broker, records);
  const system = await ground.startSystem({ ROLES: 'ingest' });
  await until(async () => {
    const rows = await ground.db.query<{ stored: bigint }>(
      sql`SELECT COALESCE(sum(stored), 0)::bigint AS stored FROM dlq.source_partitions`,
    );
    return Number(rows[0]?.stored ?? 0n) >= count;
  });
  await system.stop();
  await ground.db.query(sql`VACUUM ANALYZE dlq.dlq_messages`);
}

async function measureProducer({ brokers }: Ground): Promise<number> {
  const producer = new Producer({
    clientId: 'bench-floor',
    bootstrapBrokers: brokers.split(','),
    idempotent: true,
    acks: -1,
  });
  const perSend = 500;
  const sendsPerPartition = Math.ceil(count / perSend / partitions);
  const messages = Array.from({ length: perSend }, (_, i) => ({
    topic,
    key: Buffer.from(`c-${i % 997}`),
    value: orderValue(i),
  }));
  await producer.send({ messages: [{ ...messages[0]!, partition: 0 }] });
  const seconds = await timed(() =>
    Promise.all(
      Array.from({ length: partitions }, async (_, partition) => {
        const mine = messages.map((message) => ({ ...message, partition }));
        for (let i = 0; i < sendsPerPartition; i += 1) await producer.send({ messages: mine });
      }),
    ),
  );
  await producer.close();
  return (sendsPerPartition * partitions * perSend) / seconds;
}

async function measureOneByOne({ db, broker }: Ground, messages: number): Promise<number> {
  const ids = await db.query<{ id: string }>(sql`
    SELECT id FROM dlq.dlq_messages WHERE status = 'PENDING' ORDER BY created_at LIMIT ${messages}`);
  const seconds = await timed(async () => {
    for (const { id } of ids) {
      const [row] = await db.query<{ payload: string }>(
        sql`SELECT payload::text AS payload FROM dlq.dlq_messages WHERE id = ${id}`,
      );
      await db.query(sql`
        UPDATE dlq.dlq_messages SET status = 'RETRYING', retry_count = retry_count + 1, last_retry_at = NOW()
        WHERE id = ${id}`);
      await broker.publish(
        [{ topic, key: Buffer.from(id), value: Buffer.from(row?.payload ?? ''), headers: [] }],
        { timeoutMs: 5000 },
      );
      await db.query(sql`UPDATE dlq.dlq_messages SET status = 'RESOLVED' WHERE id = ${id}`);
    }
  });
  await resetBacklog(db);
  return messages / seconds;
}

async function measureUpdate({ db }: Ground): Promise<number> {
  const rows = await db.query<{ id: string }>(sql`SELECT id FROM dlq.dlq_messages ORDER BY created_at, id`);
  const batches = Array.from({ length: Math.ceil(rows.length / 1000) }, (_, i) =>
    rows.slice(i * 1000, (i + 1) * 1000).map(({ id }) => id),
  );
  const seconds = await timed(() =>
    Promise.all(
      [0, 1].map(async (lane) => {
        for (const ids of batches.filter((_, i) => i % 2 === lane))
          await db.query(sql`
            UPDATE dlq.dlq_messages t SET status = 'RESOLVED' FROM unnest(${ids}::uuid[]) AS keys (id)
            WHERE t.id = keys.id`);
      }),
    ),
  );
  await resetBacklog(db);
  return rows.length / seconds;
}

async function measureDatabase(ground: Ground): Promise<number> {
  const acknowledgeAtOnce = (broker: Broker): Broker => ({
    ...broker,
    publish: async (records) =>
      records.map((_, i) => ({ result: 'acked', partition: i % partitions, offset: BigInt(i) })),
  });
  const perSecond = await measureRetryAll(
    await ground.startSystem({ ROLES: 'api' }, { broker: acknowledgeAtOnce }),
  );
  await resetBacklog(ground.db);
  return perSecond;
}

async function measureOurs(ground: Ground): Promise<number> {
  return measureRetryAll(await ground.startSystem({ ROLES: 'api' }));
}

async function measureRetryAll(system: System): Promise<number> {
  let retried = 0;
  const seconds = await timed(async () => {
    const answer = await fetch(`${system.url}/api/v1/dlq/${topic}/retry-all`, { method: 'POST' });
    ({ retried } = (await answer.json()) as { retried: number });
  });
  await system.stop();
  if (retried !== count) throw new Error(`retried ${retried} of ${count}`);
  return count / seconds;
}

async function resetBacklog(db: Database): Promise<void> {
  await db.query(sql`UPDATE dlq.dlq_messages SET status = 'PENDING', retry_count = 0`);
  await db.query(sql`VACUUM FULL ANALYZE dlq.dlq_messages`);
}
