import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import type { Worker } from '../../platform/work/work.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { listSources } from '../sources.ts';
import {
  addPartitions,
  claimPartitions,
  clearPartitionError,
  deleteLocalPartitions,
  notePartitionError,
  observePartitions,
  renewPartitions,
} from './partitions-table.ts';

let database: TestDatabase;
let worker: Worker;
before(async () => {
  database = await createTestDatabase();
  worker = createTestWorker(database.db);
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
  await addPartitions(database.db, clusterId, found);
  return topicId;
}

const clusters = async (): Promise<readonly string[]> =>
  [...new Set((await listSources(database.db)).map(({ clusterId }) => clusterId))].toSorted();

test('partitions of a stopped local broker are deleted; ours, running ones and real clusters stay', async () => {
  for (const clusterId of ['local-gone', 'local-living', 'local-ours', 'real']) await addTopic(clusterId, 1);
  await database.db.query(sql`
    INSERT INTO platform.replicas (replica_id, roles, kafka_cluster_id, version)
    VALUES ('neighbour', '{ingest}', 'local-living', '0')`);
  await deleteLocalPartitions(database.db, 'local-ours');
  assert.deepEqual(await clusters(), ['local-living', 'local-ours', 'real']);
});

test('a locked partition does not block observing and claiming the others', async () => {
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
      stableEnd: 7n,
    }));
    await observePartitions(database.db, clusterId, { found, unknownTopics: new Set() });
    const claimed = await claimPartitions(worker, { clusterId, limit: 2, leaseMs: 60_000 });
    assert.deepEqual(
      claimed.map(({ partition }) => partition),
      [1],
    );
  });
  const ends = (await listSources(database.db))
    .filter((one) => one.topicId === topicId)
    .map(({ logEnd }) => logEnd);
  assert.deepEqual(ends, [null, 7n]);
});

test('an error is cleared only by the replica that has the lease', async () => {
  const clusterId = randomUUID();
  await addTopic(clusterId, 1);
  const [leased] = await claimPartitions(worker, { clusterId, limit: 1, leaseMs: 60_000 });
  assert.ok(leased !== undefined);
  const lastError = async (): Promise<string | null | undefined> =>
    (await listSources(database.db)).find((one) => one.topicId === leased.topicId)?.lastError;
  await notePartitionError(database.db, leased, { error: 'broker unavailable' });
  await clearPartitionError(database.db, {
    ...leased,
    lease: { ...leased.lease, epoch: leased.lease.epoch - 1n },
  });
  assert.equal(await lastError(), 'broker unavailable');
  await clearPartitionError(database.db, leased);
  assert.equal(await lastError(), null);
});

test('a locked partition stays ours, and does not block the renewal of the others', async () => {
  const clusterId = randomUUID();
  const topicId = await addTopic(clusterId, 2);
  const leased = await claimPartitions(worker, { clusterId, limit: 2, leaseMs: 60_000 });
  const idOf = (partition: number) => leased.find((one) => one.partition === partition)?.id;
  await database.db.transaction(async (tx) => {
    await tx.query(sql`
      SELECT id FROM dlq.source_partitions WHERE topic_id = ${topicId} AND partition = 0 FOR UPDATE`);
    const { renewed, locked } = await renewPartitions(worker, leased, 60_000);
    assert.deepEqual(
      [renewed, locked].map((list) => list.map(({ id }) => id)),
      [[idOf(1)], [idOf(0)]],
    );
  });
});

test('how long reading has been blocked is measured by the clock of the database', async () => {
  const topicId = await addTopic(randomUUID(), 2);
  await database.db.query(sql`
    UPDATE dlq.source_partitions
    SET log_end = 5, log_stable_end = 0, held_back_since = clock_timestamp() - interval '90 seconds'
    WHERE topic_id = ${topicId} AND partition = 0`);
  const found = (await listSources(database.db)).filter((one) => one.topicId === topicId);
  const seconds = found.map(({ blockedSeconds }) => Math.round(blockedSeconds / 10) * 10);
  assert.deepEqual(seconds, [90, 0]);
});
