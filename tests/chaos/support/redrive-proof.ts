import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { sleep } from '../../../src/kernel/clock.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import type { RunningKafka } from '../../../tools/kafka/start-kafka.ts';
import { createApiClient } from '../../support/api-client.ts';
import { readPlaced, type PlacedRecord } from '../../support/broker-conformance.ts';
import {
  commandRedrive,
  planRedrive,
  showRedrive,
  type ItemView,
  type RedriveView,
} from '../../support/redrives.ts';
import type { Scene } from './scene.ts';
import type { Replica } from './start-replica.ts';
import { until } from './until.ts';

export type ProofOptions = Readonly<{ count: number; keys: number; perSecond: number; withinMs: number }>;

/** What a redrive was about, and what the broker has of it. */
export type Proof = Readonly<{
  redrive: RedriveView;
  items: readonly ItemView[];
  records: readonly PlacedRecord[];
}>;

/** Dead letters of keys that repeat, without the way through Kafka. */
export async function storeLetters(
  { db, dlqTopic, originalTopic }: Scene,
  { count, keys }: ProofOptions,
): Promise<void> {
  await db.query(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, source_topic, message_key, raw_value, created_at)
    SELECT ${originalTopic}, 'failed', ${dlqTopic}, convert_to('k' || n % ${keys}::int, 'UTF8'),
           convert_to(n::text, 'UTF8'), clock_timestamp() - interval '1 day' + n * interval '1 ms'
    FROM generate_series(1, ${count}::int) AS n`);
}

/**
 * Runs a redrive in two replicas. At a quarter the one that runs it is killed, at half the broker is killed and started
 * again, at three quarters, when its rate has been
 * lowered, it is paused and resumed. Returns it at its end.
 */
export async function runDisturbed(at: Scene, kafka: RunningKafka, options: ProofOptions): Promise<Proof> {
  const replicas = [await at.start(), await at.start()];
  const [first] = replicas;
  assert.ok(first);
  const { id } = await planRedrive(createApiClient(first.url), {
    filter: { topic: at.originalTopic },
    rate_per_second: options.perSecond,
  });
  await commandRedrive(createApiClient(first.url), id, 'start');

  const waitFor = (share: number): Promise<unknown> =>
    until(
      `${share * 100} % have an outcome`,
      async () => (await countEnded(at, id)) >= options.count * share || null,
      {
        withinMs: options.withinMs,
        explain: () => replicas.map((replica) => replica.log().slice(-2000)).join('\n--\n'),
      },
    );
  await waitFor(0.25);
  const victim = await runnerOf(at, id, replicas);
  await victim.kill();
  const heir = replicas.find((replica) => replica !== victim) ?? assert.fail();
  const api = createApiClient(heir.url);

  await waitFor(0.5);
  await kafka.kill();
  await kafka.restart();

  // Slower, or on a busy machine it has finished before the pause.
  await setRate(at, id, options.perSecond / 4);
  await waitFor(0.75);
  await commandRedrive(api, id, 'pause');
  const claims = await countClaims(at);
  await until(
    'nothing is in flight',
    async () => (await showRedrive(api, id)).counts['in_flight'] === 0 || null,
  );
  assert.equal(await countClaims(at), claims, 'nothing is claimed after the pause was answered');
  await setRate(at, id, options.perSecond);
  await commandRedrive(api, id, 'resume');

  const redrive = await until(
    'the redrive has ended',
    async () => {
      const shown = await showRedrive(api, id);
      return shown.state === 'finished' && shown.receipt !== null ? shown : null;
    },
    { withinMs: options.withinMs, explain: () => heir.log().slice(-4000) },
  );
  const lines = await fetch(`${heir.url}/api/v1/dlq/redrives/${id}/items`, {
    headers: { accept: 'application/x-ndjson' },
  });
  const items = (await lines.text())
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as ItemView);
  return { redrive, items, records: await readPlaced(at.broker, at.originalTopic) };
}

async function setRate({ db }: Scene, id: string, perSecond: number): Promise<void> {
  await db.query(sql`
    UPDATE dlq.redrives SET options = jsonb_set(options, '{rate_per_second}', to_jsonb(${perSecond}::float8))
    WHERE id = ${id}`);
}

async function countEnded({ db }: Scene, id: string): Promise<number> {
  const [row] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM dlq.redrive_items WHERE redrive_id = ${id} AND outcome IS NOT NULL`);
  return row?.count ?? 0;
}

async function countClaims({ db }: Scene): Promise<number> {
  const [row] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM dlq.message_history WHERE event = 'retry_started'`);
  return row?.count ?? 0;
}

/** The process that holds the lease of the redrive. */
async function runnerOf({ db }: Scene, id: string, replicas: readonly Replica[]): Promise<Replica> {
  for (;;) {
    const [row] = await db.query<{ owner: string | null }>(sql`
      SELECT lease_owner AS owner FROM dlq.redrives WHERE id = ${id}`);
    const runner = replicas.find(({ pid }) => row?.owner?.includes(`-${pid}-`) === true);
    if (runner !== undefined) return runner;
    await sleep(20);
  }
}

/**
 * Each message has one outcome and was written at most once; what is published lies where its item says; per key the
 * order is kept; and the receipt is that of the items.
 */
export async function checkProof(
  { db }: Scene,
  { redrive, items, records }: Proof,
  count: number,
): Promise<void> {
  const { selected = 0, ...outcomes } = redrive.receipt?.counts ?? {};
  assert.equal(selected, count);
  assert.equal(items.length, count);
  assert.equal(
    Object.values(outcomes).reduce((sum, one) => sum + one, 0),
    count,
  );
  assert.equal(redrive.receipt?.sha256, hashOf(items));
  assert.equal(new Set(items.map((item) => item.message_id)).size, count);
  const { published = 0, unknown = 0 } = outcomes;
  assert.ok(
    published <= records.length && records.length <= published + unknown,
    `${records.length} records`,
  );

  const recordOf = new Map(records.map((placed) => [idOf(placed), placed]));
  assert.equal(recordOf.size, records.length, 'no message was written twice');
  for (const item of items) {
    const placed = recordOf.get(item.message_id);
    if (item.outcome === 'published')
      assert.deepEqual([placed?.partition, Number(placed?.record.offset)], [item.partition, item.offset]);
    else if (item.outcome !== 'unknown')
      assert.equal(placed, undefined, `${item.message_id} is ${item.outcome}`);
  }
  checkOrder(records);

  const rows = await db.query<{ id: string; status: string }>(sql`SELECT id, status FROM dlq.dlq_messages`);
  const outcomeOf = new Map(items.map((item) => [item.message_id, item.outcome]));
  for (const { id, status } of rows)
    assert.equal(status, outcomeOf.get(id) === 'published' ? 'RESOLVED' : 'PENDING', id);
}

const idOf = ({ record: { headers } }: PlacedRecord): string =>
  String(headers.find(({ key }) => String(key) === 'redrive-message-id')?.value);

/** The numbers of each key ascend, in the order of offsets. */
function checkOrder(records: readonly PlacedRecord[]): void {
  const last = new Map<string, number>();
  const sorted = records.toSorted(
    (a, b) => a.partition - b.partition || (a.record.offset < b.record.offset ? -1 : 1),
  );
  for (const {
    record: { key, value },
  } of sorted) {
    const number = Number(String(value));
    assert.ok(
      number > (last.get(String(key)) ?? 0),
      `${String(key)}: ${number} after ${last.get(String(key))}`,
    );
    last.set(String(key), number);
  }
}

function hashOf(items: readonly ItemView[]): string {
  const hash = createHash('sha256');
  for (const item of items) {
    const fields = [
      item.position,
      item.message_id,
      item.attempt,
      item.outcome,
      item.target,
      item.partition,
      item.offset,
    ];
    hash.update(`${fields.map((field) => field ?? '').join(',')}\n`);
  }
  return hash.digest('hex');
}
