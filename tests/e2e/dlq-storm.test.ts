import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { Broker } from '../../src/platform/broker/port.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { archiveEverything, arrivedMessages, historyOf } from '../support/stored-message.ts';

/** Everybody does everything to the same few messages at once, while a consumer sends them back dead. */

const topic = 'orders.v1';
const dlq = 'orders.dlq.v1';
const durationMs = 4000;

let system: TestSystem;
before(async () => {
  system = await startTestSystem({ kafka: 'local' });
  for (const name of [topic, dlq]) await broker().createTopic(name, 1);
});
after(() => system.drop());

const broker = (): Broker => {
  assert.ok(system.broker);
  return system.broker;
};

test('a storm of retries, decisions, archiving and failures leaves every message in a state it may have', async () => {
  const letters = Array.from({ length: 8 }, (_, i) => ({
    topic: dlq,
    key: null,
    value: Buffer.from(`{"i":${i}}`),
    headers: [],
  }));
  await broker().publish(letters, { timeoutMs: 1000 });
  const ids = (await arrivedMessages(system.api, dlq, 8)).map(({ id }) => id);

  const untilMs = performance.now() + durationMs;
  const statuses = new Map<number, number>();
  await Promise.all([
    ...Array.from({ length: 8 }, (_, i) => client(ids, i, untilMs, statuses)),
    failingConsumer(untilMs),
    archivist(untilMs),
  ]);

  assert.deepEqual(
    [...statuses.keys()].filter((status) => ![200, 404, 409].includes(status)),
    [],
  );
  for (const status of [200, 409]) assert.ok((statuses.get(status) ?? 0) > 10, `few answers with ${status}`);
  await everythingIsTaken();
  for (const id of ids) await historyIsAChain(id);
  await countsAreRight();
});

async function client(
  ids: readonly string[],
  seed: number,
  untilMs: number,
  statuses: Map<number, number>,
): Promise<void> {
  const actions = ['retry', 'retry', 'retry', 'reopen', 'dead', 'retry-all'] as const;
  for (let step = seed; performance.now() < untilMs; step += 1) {
    const id = ids[(step * 7 + seed) % ids.length];
    const action = actions[(step * 5 + seed * 3) % actions.length];
    const path = action === 'retry-all' ? `${topic}/retry-all` : `messages/${id}/${action}`;
    const body = action === 'reopen' ? { reason: 'storm' } : undefined;
    const { status } = await system.api.post(`/api/v1/dlq/${path}`, body, { 'x-actor': `client ${seed}` });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
}

/** Reads what is re-driven and dead-letters two of three records. */
async function failingConsumer(untilMs: number): Promise<void> {
  const [partition] = (await broker().partitions((name) => name === topic)).partitions;
  assert.ok(partition);
  for (let offset = partition.start; performance.now() < untilMs;) {
    const limits = { maxWaitMs: 50, maxBytes: 1 << 20, maxBytesPerPartition: 1 << 20 };
    const [batch] = await broker().fetch([{ ...partition, offset }], limits);
    assert.ok(batch && 'records' in batch);
    const failed = batch.records.filter((record) => record.offset % 3n !== 0n);
    const letters = failed.map(({ key, value, headers }) => ({ topic: dlq, key, value, headers }));
    await broker().publish(letters, { timeoutMs: 1000 });
    offset = batch.nextOffset;
  }
}

async function archivist(untilMs: number): Promise<void> {
  while (performance.now() < untilMs) await archiveEverything(system.db);
}

async function everythingIsTaken(): Promise<void> {
  await eventually(async () => {
    const [partition] = (await broker().partitions((name) => name === dlq)).partitions;
    const { body } = await system.api.get<{ sources: { topic: string; position: number }[] }>(
      '/api/v1/dlq/sources',
    );
    assert.equal(body.sources[0]?.position, Number(partition?.end));
  });
  const { body } = await system.api.get<{ balanced: boolean; partitions: { stored: number }[] }>(
    '/api/v1/dlq/accounting',
  );
  // Every dead letter that came back was known again: there are only the first eight.
  assert.deepEqual([body.balanced, body.partitions[0]?.stored], [true, 8]);
  const odd = await system.db.query(sql`
    SELECT id, status, retry_count FROM dlq.dlq_messages
    WHERE status = 'RETRYING' OR retry_count > max_retries OR retry_count < 0 OR lease_until IS NOT NULL
    UNION ALL
    SELECT id, status, retry_count FROM dlq.dlq_messages_archive WHERE status NOT IN ('RESOLVED', 'DEAD')`);
  assert.deepEqual(odd, []);
}

/** Each change begins where the one before has ended, and the last one ends where the message is. */
async function historyIsAChain(id: string): Promise<void> {
  const { body } = await system.api.get<{ status: string }>(`/api/v1/dlq/messages/${id}`);
  let status: string | null = 'PENDING';
  for (const entry of await historyOf(system.api, id)) {
    assert.equal(entry.status_from, status, `${id}: ${entry.event}`);
    status = entry.status_to;
  }
  assert.equal(body.status, status);
}

async function countsAreRight(): Promise<void> {
  const rows = await system.db.query<{ status: string; count: bigint }>(sql`
    SELECT status, count(*) AS count FROM dlq.dlq_messages GROUP BY status ORDER BY status`);
  const { body } = await system.api.get<{ topics: { counts: Record<string, number> }[] }>('/api/v1/dlq');
  const shown = Object.entries(body.topics[0]?.counts ?? {}).filter(([, count]) => count > 0);
  assert.deepEqual(
    shown.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    rows.map(({ status, count }) => [status, Number(count)]),
  );
}
