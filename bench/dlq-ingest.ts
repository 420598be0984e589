import { randomBytes } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileGlobs } from '../src/kernel/glob/match-glob.ts';
import { createDecoder } from '../src/dlq/ingest/decoding/decode-dead-letter.ts';
import { messageRows } from '../src/dlq/ingest/message-rows.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { createUuidMaker } from '../src/kernel/uuid.ts';
import type { OutgoingRecord } from '../src/platform/broker/port.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { openGround, orderValue, printTable, publishAll, timed, until, type Ground } from './support.ts';

/**
 * How fast dead letters go from Kafka into the table: 500-byte JSON records on 4 partitions.
 *   floor       the final table with all its columns, indexes and triggers, prebuilt rows, bulk insert on as
 *               many connections as there are partitions; the broker runs idle beside it
 *   seeds' way  one record, one INSERT, one after another, as the system that came before did
 *   ours        the whole path: fetch, decode, store with the position, mirror
 *   encrypted   the same with `protect.encrypt` for the topic
 * node bench/dlq-ingest.ts [records]
 */
const count = Number(process.argv[2] ?? 100_000);
const partitions = 4;
const topic = 'bench.dlq.v1';
const headers = [
  { key: Buffer.from('error'), value: Buffer.from('TimeoutError: no answer from warehouse within 5000 ms') },
  { key: Buffer.from('original_topic'), value: Buffer.from('bench.v1') },
];

const ground = await openGround();
try {
  const records = Array.from({ length: count }, (_, i): OutgoingRecord => {
    return { topic, key: Buffer.from(`c-${i % 997}`), value: orderValue(i), headers };
  });
  await ground.broker.createTopic(topic, partitions);
  await publishAll(ground.broker, records);

  const floor = await measureFloor(ground, records);
  const oneByOne = await measureOneByOne(ground, records.slice(0, Math.min(count, 5000)));
  await ground.db.query(sql`TRUNCATE dlq.dlq_messages`);
  const ours = await measureOurs(ground);
  await ground.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.source_partitions`);
  const encrypted = await measureOurs(ground, {
    KAFKA_CONSUMER_GROUP: 'bench.encrypted',
    PROTECT_ENCRYPT_TOPICS: 'bench.*',
    PROTECT_ENCRYPT_KEY_FILE: writeMasterKey(),
  });
  printTable(`Ingest of ${count.toLocaleString('en')} dead letters`, [
    { name: 'floor: prebuilt rows, bulk insert', perSecond: floor },
    { name: "the seeds' way: one INSERT per record", perSecond: oneByOne },
    { name: 'ours: Kafka to committed rows and position', perSecond: ours },
    { name: 'ours, encrypted', perSecond: encrypted },
  ]);
  process.stdout.write(`  ours against the seeds' way: ${(ours / oneByOne).toFixed(1)} times\n`);
} finally {
  await ground.stop();
}

async function measureFloor({ db }: Ground, all: readonly OutgoingRecord[]): Promise<number> {
  const decode = createDecoder({ rules: [], isDeadLetterTopic: compileGlobs(['*.dlq.v1']) });
  const makeId = createUuidMaker(systemClock);
  const perStatement = 1000;
  const statements = Array.from({ length: partitions }, (_, partition) => {
    const leased = {
      id: 0n,
      topic,
      topicId: '00000000-0000-4000-8000-000000000000',
      partition,
      nextOffset: 0n,
      highOffset: 0n,
      backfillUntil: null,
      lease: { owner: '', epoch: 0n, endsAtMs: 0 },
    };
    const mine = all.filter((_, i) => i % partitions === partition);
    return Array.from({ length: Math.ceil(mine.length / perStatement) }, (_, s) => {
      const letters = mine.slice(s * perStatement, (s + 1) * perStatement).map((record, i) => ({
        letter: decode(
          {
            ...record,
            offset: BigInt(s * perStatement + i),
            timestamp: 1_790_000_000_000n,
            compression: 'none',
          },
          leased,
        ),
        status: 'PENDING' as const,
        retryCount: 0,
        parentId: null,
      }));
      const { columns, select } = messageRows(leased, letters, { maxRetries: 3, makeId });
      return sql`INSERT INTO dlq.dlq_messages (${columns}) ${select}`;
    });
  });
  const seconds = await timed(() =>
    Promise.all(
      statements.map(async (mine) => {
        for (const statement of mine) await db.query(statement);
      }),
    ),
  );
  await db.query(sql`TRUNCATE dlq.dlq_messages`);
  return all.length / seconds;
}

async function measureOneByOne({ db }: Ground, records: readonly OutgoingRecord[]): Promise<number> {
  const seconds = await timed(async () => {
    for (const { value } of records)
      await db.query(sql`
        INSERT INTO dlq.dlq_messages (original_topic, error_message, payload)
        VALUES ('bench.v1', 'processing failed', ${value?.toString() ?? ''}::jsonb)`);
  });
  return records.length / seconds;
}

function writeMasterKey(): string {
  const file = join(mkdtempSync(join(tmpdir(), 'bench-key-')), 'master-keys');
  writeFileSync(file, `bench:${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  return file;
}

async function measureOurs(ground: Ground, env: Readonly<Record<string, string>> = {}): Promise<number> {
  const stored = async (): Promise<number> => {
    const rows = await ground.db.query<{ stored: bigint }>(
      sql`SELECT COALESCE(sum(stored), 0)::bigint AS stored FROM dlq.source_partitions`,
    );
    return Number(rows[0]?.stored ?? 0n);
  };
  const system = await ground.startSystem({ ROLES: 'ingest', ...env });
  // From the first stored batch on: finding the topic and taking its partitions is not the question here.
  await until(async () => (await stored()) > 0);
  const already = await stored();
  const seconds = await timed(() => until(async () => (await stored()) >= count));
  await system.stop();
  return (count - already) / seconds;
}
