import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { PartitionStore } from '../usecase/ports.ts';
import { createPostgresPartitionStore } from './postgres-partition-store.ts';

let database: TestDatabase;
let partitions: PartitionStore;
before(async () => {
  database = await createTestDatabase();
  partitions = createPostgresPartitionStore(database.db, createTestWorker(database.db));
});
after(() => database.drop());

async function addTopic(clusterId: string, count: number): Promise<string> {
  const topicId = randomUUID();
  const found = Array.from({ length: count }, (_, partition) => ({
    topic: 'orders.dlq.v1',
    topicId,
    partition,
    firstOffset: 0n,
  }));
  await partitions.add(clusterId, found);
  return topicId;
}

const clusters = async (): Promise<readonly string[]> =>
  [...new Set((await partitions.list()).map(({ clusterId }) => clusterId))].toSorted();

test('partitions of a local broker go with its process; ours, living ones and real clusters stay', async () => {
  for (const clusterId of ['local-gone', 'local-living', 'local-ours', 'real']) await addTopic(clusterId, 1);
  await database.db.query(sql`
    INSERT INTO platform.replicas (replica_id, roles, kafka_cluster_id, version)
    VALUES ('neighbour', '{ingest}', 'local-living', '0')`);
  await partitions.forgetLocal('local-ours');
  assert.deepEqual(await clusters(), ['local-living', 'local-ours', 'real']);
});

test('a partition that somebody holds locked keeps nobody from observing and claiming the others', async () => {
  const clusterId = randomUUID();
  const topicId = await addTopic(clusterId, 2);
  await database.db.transaction(async (tx) => {
    await tx.query(sql`
      SELECT id FROM dlq.source_partitions WHERE topic_id = ${topicId} AND partition = 0 FOR UPDATE`);
    const found = [0, 1].map((partition) => ({
      topic: 'orders.dlq.v1',
      topicId,
      partition,
      start: 0n,
      end: 7n,
    }));
    await partitions.observe(clusterId, found, new Set());
    const claimed = await partitions.claim(clusterId, 2, 60_000);
    assert.deepEqual(
      claimed.map(({ partition }) => partition),
      [1],
    );
  });
  const ends = (await partitions.list()).filter((one) => one.topicId === topicId).map(({ logEnd }) => logEnd);
  assert.deepEqual(ends, [null, 7n]);
});

test('an error that is over is cleared, but only by the one who holds the partition', async () => {
  const clusterId = randomUUID();
  await addTopic(clusterId, 1);
  const [held] = await partitions.claim(clusterId, 1, 60_000);
  assert.ok(held !== undefined);
  const lastError = async (): Promise<string | null | undefined> =>
    (await partitions.list()).find((one) => one.topicId === held.topicId)?.lastError;
  await partitions.noteError(held, 'the broker is away', false);
  await partitions.clearError({ ...held, lease: { ...held.lease, epoch: held.lease.epoch - 1n } });
  assert.equal(await lastError(), 'the broker is away');
  await partitions.clearError(held);
  assert.equal(await lastError(), null);
});

test('a partition that somebody holds locked stays ours, and keeps no other from its lease', async () => {
  const clusterId = randomUUID();
  const topicId = await addTopic(clusterId, 2);
  const held = await partitions.claim(clusterId, 2, 60_000);
  const idOf = (partition: number) => held.find((one) => one.partition === partition)?.id;
  await database.db.transaction(async (tx) => {
    await tx.query(sql`
      SELECT id FROM dlq.source_partitions WHERE topic_id = ${topicId} AND partition = 0 FOR UPDATE`);
    const { ids, locked } = await partitions.renew(held, 60_000);
    assert.deepEqual([[...ids], [...locked]], [[idOf(1)], [idOf(0)]]);
  });
});
