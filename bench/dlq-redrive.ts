import type { System } from '../src/compose.ts';
import type { Broker } from '../src/platform/broker/port.ts';
import type { Database } from '../src/platform/postgres/database.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { openGround, printTable, timed, until, type Ground } from './support.ts';

/**
 * What a planned redrive costs against a retry-all, and how long its plan takes: 500-byte records, 4 partitions.
 *   floor       retry-all with a broker that acknowledges at once: claim and settle alone
 *   seeds' way  one select, one publish, one update at a time, as the system that came before did
 *   retry-all   POST …/retry-all to Kafka
 *   redrive     POST …/redrives/:id/start to its receipt, to Kafka; each message has an item with its outcome
 *   with plan   the same, from the request that creates it
 * node bench/dlq-redrive.ts [records]           all of them, with a floor for the redrive too
 * node bench/dlq-redrive.ts plan [records]      the plan alone, of a million messages by default
 */
const isPlanOnly = process.argv[2] === 'plan';
const count = Number(process.argv[isPlanOnly ? 3 : 2] ?? (isPlanOnly ? 1_000_000 : 30_000));
const partitions = 4;
const topic = 'bench.v1';
const root = '/api/v1/dlq/redrives';

const ground = await openGround();
try {
  await ground.broker.createTopic(topic, partitions);
  process.stdout.write(`  stored in ${(await timed(() => fill(ground.db))).toFixed(1)} s\n`);
  await (isPlanOnly ? measurePlan(ground) : measureAll(ground));
} finally {
  await ground.stop();
}

async function measurePlan({ startSystem }: Ground): Promise<void> {
  const system = await startSystem({ ROLES: 'api' });
  const seconds = await timed(async () => redriveInState(system, await create(system), 'planned'));
  process.stdout.write(
    `\nPlanned ${count.toLocaleString('en')} messages in ${seconds.toFixed(1)} s, ${Math.round(count / seconds).toLocaleString('en')} /s\n`,
  );
  await system.stop();
}

async function measureAll(at: Ground): Promise<void> {
  const floor = await withFresh(at, measureRetryAll, acknowledgeAtOnce);
  const items = await withFresh(at, measureRedrive, acknowledgeAtOnce);
  const oneByOne = await measureOneByOne(at, Math.min(count, 2000));
  const retryAll = await withFresh(at, measureRetryAll);
  const redrive = await withFresh(at, measureRedrive);
  printTable(`Re-driving ${count.toLocaleString('en')} messages`, [
    { name: 'floor: claim and settle of a retry-all', perSecond: floor },
    { name: 'claim and settle of a redrive', perSecond: items.run },
    { name: "the seeds' way: one at a time", perSecond: oneByOne },
    { name: 'retry-all', perSecond: retryAll },
    { name: 'redrive, without its plan', perSecond: redrive.run },
    { name: 'redrive, with its plan', perSecond: redrive.all },
  ]);
  const against = (rate: number): string =>
    `${(redrive.run / rate).toFixed(2)} (${(redrive.all / rate).toFixed(2)} with its plan)`;
  process.stdout.write(`  redrive against its own claim and settle: ${against(items.run)}\n`);
  process.stdout.write(`  redrive against retry-all: ${against(retryAll)}\n`);
  process.stdout.write(`  redrive against the seeds' way: ${against(oneByOne)} times\n`);
}

function acknowledgeAtOnce(broker: Broker): Broker {
  return {
    ...broker,
    publish: async (records) =>
      records.map((_, i) => ({ result: 'acked', partition: i % partitions, offset: BigInt(i) })),
  };
}

async function withFresh<Result>(
  { db, startSystem }: Ground,
  measure: (system: System) => Promise<Result>,
  broker?: (broker: Broker) => Broker,
): Promise<Result> {
  await reset(db);
  const system = await startSystem({ ROLES: 'api' }, broker === undefined ? {} : { broker });
  const result = await measure(system);
  await system.stop();
  return result;
}

async function measureRetryAll(system: System): Promise<number> {
  let retried = 0;
  const seconds = await timed(async () => {
    const answer = await fetch(`${system.url}/api/v1/dlq/${topic}/retry-all`, { method: 'POST' });
    ({ retried } = (await answer.json()) as { retried: number });
  });
  if (retried !== count) throw new Error(`retried ${retried} of ${count}`);
  return count / seconds;
}

async function measureRedrive(system: System): Promise<Readonly<{ run: number; all: number }>> {
  let id = '';
  const planned = await timed(async () => {
    id = await create(system);
    await redriveInState(system, id, 'planned');
  });
  const seconds = await timed(async () => {
    await post(system, `${root}/${id}/start`, {});
    await redriveInState(system, id, 'finished');
  });
  const { counts } = await show(system, id);
  if (counts['published'] !== count) throw new Error(`published ${JSON.stringify(counts)}`);
  return { run: count / seconds, all: count / (planned + seconds) };
}

async function measureOneByOne({ db, broker }: Ground, messages: number): Promise<number> {
  await reset(db);
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
  return messages / seconds;
}

async function create(system: System): Promise<string> {
  const body = { filter: { topic }, reason: 'the consumer was fixed' };
  return ((await post(system, root, body)) as { id: string }).id;
}

type Shown = Readonly<{
  state: string;
  state_reason: string | null;
  counts: Readonly<Record<string, number>>;
}>;

async function show(system: System, id: string): Promise<Shown> {
  return (await (await fetch(`${system.url}${root}/${id}`)).json()) as Shown;
}

async function redriveInState(system: System, id: string, state: string): Promise<void> {
  await until(async () => {
    const shown = await show(system, id);
    if (shown.state === 'failed' || shown.state === 'stopped')
      throw new Error(shown.state_reason ?? shown.state);
    return shown.state === state;
  });
}

async function post(system: System, path: string, body: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${system.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

/** As ingest stores them. */
async function fill(db: Database): Promise<void> {
  const step = 50_000;
  for (let from = 0; from < count; from += step)
    await db.query(sql`
      INSERT INTO dlq.dlq_messages
        (original_topic, error_message, payload, created_at, source_topic, source_topic_id, source_partition,
         source_offset, raw_value, message_key, headers, consumer_group, fingerprint, error_class)
      SELECT ${topic}, 'TimeoutError: no answer within 5000 ms', made.value::jsonb,
             timestamptz '2026-01-01' + i * interval '1 second', 'bench.dlq.v1',
             '00000000-0000-4000-8000-000000000000', i % ${partitions}, i, convert_to(made.value, 'UTF8'),
             convert_to('c-' || i % 997, 'UTF8'), '[]', 'billing', 'v2:' || lpad(to_hex(i % 20), 32, '0'), 'shop.Timeout'
      FROM generate_series(${from + 1}::int, ${Math.min(from + step, count)}::int) AS i
      CROSS JOIN LATERAL (
        SELECT '{"order_id":"' || i || '","note":"' || repeat('x', 460) || '"}' AS value) AS made`);
  await db.query(sql`VACUUM ANALYZE dlq.dlq_messages`);
}

async function reset(db: Database): Promise<void> {
  await db.query(sql`TRUNCATE dlq.redrives, dlq.redrive_items, dlq.message_history`);
  await db.query(sql`UPDATE dlq.dlq_messages SET status = 'PENDING', retry_count = 0`);
  await db.query(sql`VACUUM FULL ANALYZE dlq.dlq_messages`);
}
