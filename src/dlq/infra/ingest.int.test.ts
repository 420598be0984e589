import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { systemClock } from '../../kernel/clock.ts';
import { createUuidMaker } from '../../kernel/uuid.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createDecoder } from '../adapter/decode-dead-letter.ts';
import type { DeadLetter } from '../domain/dead-letter.ts';
import type { RawRecord } from '../domain/record.ts';
import { compileTopicGlobs } from '../domain/topic-glob.ts';
import { accountSources } from '../usecase/account-sources.ts';
import { ingestBatch, type Fetched, type IngestDeps } from '../usecase/ingest-batch.ts';
import type { HeldPartition, PartitionStore } from '../usecase/ports.ts';
import { createPostgresIngestStore } from './postgres-ingest-store.ts';
import { createPostgresPartitionStore } from './postgres-partition-store.ts';

let database: TestDatabase;
let partitions: PartitionStore;
let deps: IngestDeps;
before(async () => {
  database = await createTestDatabase();
  const worker = createTestWorker(database.db);
  partitions = createPostgresPartitionStore(database.db, worker);
  deps = {
    ingest: createPostgresIngestStore(database.db, worker, {
      maxRetries: 3,
      makeId: createUuidMaker(systemClock),
      onStored: () => {},
    }),
    decode: createDecoder({ rules: [], isDeadLetterTopic: compileTopicGlobs(['*.dlq.v1']) }),
    maxRetries: 3,
  };
});
after(() => database.drop());

/** A partition of a topic of its own, claimed at `first`. */
async function holdPartition(first = 0n): Promise<HeldPartition> {
  const clusterId = randomUUID();
  await partitions.add(clusterId, [
    { topic: 'orders.dlq.v1', topicId: randomUUID(), partition: 0, firstOffset: first },
  ]);
  const [held] = await partitions.claim(clusterId, 1, 60_000);
  assert.ok(held !== undefined);
  return held;
}

function record(offset: bigint, value: string | null = `{"n":${offset}}`, error = 'boom'): RawRecord {
  return {
    offset,
    timestamp: 1_790_000_000_000n,
    key: Buffer.from('k'),
    value: value === null ? null : Buffer.from(value),
    headers: [{ key: Buffer.from('error'), value: Buffer.from(error) }],
  };
}

function fetched(records: readonly RawRecord[], nextOffset: bigint): Fetched {
  return { records, nextOffset, start: 0n, end: nextOffset };
}

async function storedOffsets(held: HeldPartition): Promise<readonly bigint[]> {
  const rows = await database.db.query<{ offset: bigint }>(sql`
    SELECT source_offset AS "offset" FROM dlq.dlq_messages WHERE source_topic_id = ${held.topicId}
    ORDER BY created_at, id`);
  return rows.map((row) => row.offset);
}

async function accountOf(held: HeldPartition) {
  const account = (await accountSources(partitions)).find(({ topicId }) => topicId === held.topicId);
  assert.ok(account !== undefined);
  return account;
}

test('rows and position move together, in the order of their offsets', async () => {
  const held = await holdPartition();
  const after = await ingestBatch(deps, held, fetched([record(0n), record(1n), record(4n)], 6n));
  assert.equal(after?.nextOffset, 6n);
  assert.deepEqual(await storedOffsets(held), [0n, 1n, 4n]);
  const account = await accountOf(held);
  assert.deepEqual([account.stored, account.notRecords, account.isBalanced], [3n, 3n, true]);
});

test('the same batch stored again, or from a wrong position, changes nothing', async () => {
  const held = await holdPartition();
  const batch = fetched([record(0n), record(1n)], 2n);
  await ingestBatch(deps, held, batch);
  assert.equal(await ingestBatch(deps, held, batch), null);
  assert.deepEqual(await storedOffsets(held), [0n, 1n]);
});

test('a replica whose partition was claimed by another stores nothing', async () => {
  const held = await holdPartition();
  await database.db.query(sql`UPDATE dlq.source_partitions SET lease_until = now() WHERE id = ${held.id}`);
  const rows = await database.db.query<{ cluster_id: string }>(
    sql`SELECT cluster_id FROM dlq.source_partitions WHERE id = ${held.id}`,
  );
  const [rescued] = await partitions.claim(rows[0]?.cluster_id ?? '', 1, 60_000);
  assert.ok(rescued !== undefined && rescued.lease.epoch > held.lease.epoch);
  assert.equal(
    await ingestBatch(deps, held, fetched([record(0n)], 1n)),
    null,
    'the lost lease is fenced off',
  );
  assert.deepEqual(await storedOffsets(held), []);
  assert.equal((await ingestBatch(deps, rescued, fetched([record(0n)], 1n)))?.nextOffset, 1n);
});

test('records that the database refuses are stored with their bytes alone, and their neighbours whole', async () => {
  const held = await holdPartition();
  const poison = (letter: DeadLetter): DeadLetter => ({
    ...letter,
    errorMessage: 'with a \u0000 NUL',
    isJson: true,
  });
  const poisoned: IngestDeps = {
    ...deps,
    decode: (one, source) => {
      const letter = deps.decode(one, source);
      return one.offset % 7n === 3n ? poison(letter) : letter;
    },
  };
  const records = Array.from({ length: 50 }, (_, i) =>
    record(BigInt(i), i % 7 === 3 ? 'no json' : undefined),
  );
  const after = await ingestBatch(poisoned, held, fetched(records, 50n));
  assert.equal(after?.nextOffset, 50n);
  assert.equal((await storedOffsets(held)).length, 50);
  const bad = await database.db.query<{ unroutable: boolean; value: string; n: bigint }>(sql`
    SELECT unroutable, convert_from(raw_value, 'UTF8') AS value, count(*) OVER () AS n FROM dlq.dlq_messages
    WHERE source_topic_id = ${held.topicId} AND source_offset % 7 = 3`);
  assert.deepEqual(bad[0], { unroutable: true, value: 'no json', n: 7n });
  assert.ok((await accountOf(held)).isBalanced);
});

test('reading again after a seek stores nothing twice, not even what was deleted or archived', async () => {
  const held = await holdPartition();
  await ingestBatch(
    deps,
    held,
    fetched(
      [0n, 1n, 2n, 3n].map((n) => record(n)),
      4n,
    ),
  );
  await database.db.query(sql`
    WITH gone AS (
      DELETE FROM dlq.dlq_messages WHERE source_topic_id = ${held.topicId} AND source_offset = 1 RETURNING *
    )
    INSERT INTO dlq.arrivals (topic_id, partition, "offset", message_id, kind)
    SELECT source_topic_id, source_partition, source_offset, id, 'deleted' FROM gone`);
  await database.db.query(sql`
    UPDATE dlq.dlq_messages SET status = 'RESOLVED' WHERE source_topic_id = ${held.topicId} AND source_offset = 2`);
  await database.db.call(sql`CALL dlq.archive_old_dlq_messages(-1)`);

  const { clusterId } = await accountOf(held);
  assert.ok(
    await partitions.seek({ ...held, clusterId }, { offset: 0n, actor: 'tester', reason: 'look again' }),
  );
  const [again] = await partitions.claim(clusterId, 1, 60_000);
  assert.equal(again?.nextOffset, 0n);
  assert.ok(again !== undefined);
  const after = await ingestBatch(
    deps,
    again,
    fetched(
      [0n, 1n, 2n, 3n, 4n].map((n) => record(n)),
      5n,
    ),
  );
  assert.equal(after?.nextOffset, 5n);
  assert.deepEqual(await storedOffsets(held), [0n, 3n, 4n]);
  const account = await accountOf(held);
  assert.deepEqual([account.stored, account.reread, account.isBalanced], [5n, 4n, true]);
});

test('what lies before the first position can be read in later, and the account stays balanced', async () => {
  const held = await holdPartition(3n);
  await ingestBatch(deps, held, fetched([record(3n), record(4n)], 5n));
  const { clusterId } = await accountOf(held);
  await partitions.seek({ ...held, clusterId }, { offset: 0n, actor: 'tester', reason: 'from the start' });
  assert.ok((await accountOf(held)).isBalanced, 'also while it is still to be read');
  const [again] = await partitions.claim(clusterId, 1, 60_000);
  assert.ok(again !== undefined);
  await ingestBatch(
    deps,
    again,
    fetched(
      [0n, 1n, 2n, 3n, 4n, 5n].map((n) => record(n)),
      6n,
    ),
  );
  const account = await accountOf(held);
  assert.deepEqual([account.firstOffset, account.stored, account.reread], [0n, 6n, 2n]);
  assert.ok(account.isBalanced);
});

test('what retention removed before it was read is counted as lost, once', async () => {
  const held = await holdPartition();
  assert.ok(await deps.ingest.skipLost(held, 40n));
  assert.equal(await deps.ingest.skipLost(held, 40n), false);
  const account = await accountOf(held);
  assert.deepEqual([account.nextOffset, account.lost, account.isBalanced], [40n, 40n, true]);
});

test('a batch of nothing but control records moves the position', async () => {
  const held = await holdPartition();
  assert.equal((await ingestBatch(deps, held, fetched([], 3n)))?.nextOffset, 3n);
  const account = await accountOf(held);
  assert.deepEqual([account.notRecords, account.isBalanced], [3n, true]);
});
