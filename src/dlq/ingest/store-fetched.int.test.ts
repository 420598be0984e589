import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { systemClock } from '../../kernel/clock.ts';
import { createUuidMaker } from '../../kernel/uuid.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createDecoder } from './decoding/decode-dead-letter.ts';
import type { DeadLetter } from '../domain/dead-letter.ts';
import { testAct } from '../../../tests/support/acts.ts';
import type { BrokerRecord } from '../../kernel/broker-record.ts';
import { compileGlobs } from '../../kernel/glob/match-glob.ts';
import { clearPayloads } from '../domain/payloads.ts';
import { seekSource } from '../decide/seek-source.ts';
import { accountSources } from '../sources.ts';
import { addPartitions, claimPartitions, skipLostRecords, type LeasedPartition } from './partitions-table.ts';
import type { Fetched } from './split-fetched.ts';
import { createFingerprintStore } from './store-fingerprints.ts';
import { storeFetched, type StoreDeps } from './store-fetched.ts';

let database: TestDatabase;
let deps: StoreDeps;
before(async () => {
  database = await createTestDatabase();
  deps = {
    db: database.db,
    payloads: clearPayloads,
    worker: createTestWorker(database.db),
    makeId: createUuidMaker(systemClock),
    storeFingerprints: createFingerprintStore(systemClock),
    decode: createDecoder({ rules: [], isDeadLetterTopic: compileGlobs(['*.dlq.v1']) }),
    maxRetries: 3,
    onInserted: () => {},
    onRead: () => {},
  };
});
after(() => database.drop());

/** A partition of a topic of its own, claimed at `first`. */
async function leasePartition(first = 0n): Promise<LeasedPartition> {
  const clusterId = randomUUID();
  const topic = `orders-${clusterId}.dlq.v1`;
  await addPartitions(database.db, clusterId, [
    { topic, topicId: randomUUID(), partition: 0, firstOffset: first },
  ]);
  return claimAgain(clusterId);
}

async function claimAgain(clusterId: string): Promise<LeasedPartition> {
  const [leased] = await claimPartitions(deps.worker, { clusterId, limit: 1, leaseMs: 60_000 });
  assert.ok(leased !== undefined);
  return leased;
}

function record(offset: bigint, value: string | null = `{"n":${offset}}`, error = 'boom'): BrokerRecord {
  return {
    offset,
    timestamp: 1_790_000_000_000n,
    key: Buffer.from('k'),
    value: value === null ? null : Buffer.from(value),
    headers: [{ key: Buffer.from('error'), value: Buffer.from(error) }],
    compression: 'none',
  };
}

function fetched(
  records: readonly BrokerRecord[],
  nextOffset: bigint,
  skipped: Fetched['skipped'] = [],
): Fetched {
  return { records, skipped, nextOffset, start: 0n, end: nextOffset, stableEnd: nextOffset };
}

async function storedOffsets(leased: LeasedPartition): Promise<readonly bigint[]> {
  const rows = await database.db.query<{ offset: bigint }>(sql`
    SELECT source_offset AS "offset" FROM dlq.dlq_messages WHERE source_topic_id = ${leased.topicId}
    ORDER BY created_at, id`);
  return rows.map((row) => row.offset);
}

async function seekToStart({ topic, partition }: LeasedPartition, reason: string): Promise<void> {
  const target = { to: 'offset', offset: 0n } as const;
  const act = testAct('dlq:sources:manage', reason);
  await seekSource(
    { db: database.db, broker: null },
    { topic, partition, target, actor: 'tester', reason, act },
  );
}

async function accountOf(leased: LeasedPartition) {
  const account = (await accountSources(database.db)).find(({ topicId }) => topicId === leased.topicId);
  assert.ok(account !== undefined);
  return account;
}

test('rows are stored with the position, in the order of their offsets', async () => {
  const leased = await leasePartition();
  const skipped = [
    { kind: 'gap', from: 2n, to: 4n },
    { kind: 'control', from: 5n, to: 6n },
  ] as const;
  const after = await storeFetched(deps, leased, fetched([record(0n), record(1n), record(4n)], 6n, skipped));
  assert.equal(after?.nextOffset, 6n);
  assert.deepEqual(await storedOffsets(leased), [0n, 1n, 4n]);
  const account = await accountOf(leased);
  assert.deepEqual(
    [account.stored, account.gaps, account.control, account.notRecords, account.isBalanced],
    [3n, 2n, 1n, 3n, true],
  );
});

test('an offset that is neither stored nor skipped leaves the account unbalanced', async () => {
  const leased = await leasePartition();
  await storeFetched(deps, leased, fetched([record(0n), record(2n)], 3n));
  const account = await accountOf(leased);
  assert.deepEqual([account.passed, account.explained, account.isBalanced], [3n, 2n, false]);
});

test('a skipped range that crosses the end of a batch is counted once', async () => {
  const leased = await leasePartition(3n);
  await storeFetched(deps, leased, fetched([], 9n, [{ kind: 'aborted', from: 3n, to: 9n }]));
  const { clusterId } = await accountOf(leased);
  await seekToStart(leased, 'from the start');
  const again = await claimAgain(clusterId);
  const across = { kind: 'aborted', from: 1n, to: 9n } as const;
  await storeFetched(deps, again, fetched([record(0n), record(9n)], 10n, [across]));
  const account = await accountOf(leased);
  assert.deepEqual([account.stored, account.aborted, account.isBalanced], [2n, 8n, true]);
});

test('storing the same batch again, or from a wrong position, changes nothing', async () => {
  const leased = await leasePartition();
  const batch = fetched([record(0n), record(1n)], 2n);
  await storeFetched(deps, leased, batch);
  assert.equal(await storeFetched(deps, leased, batch), null);
  assert.deepEqual(await storedOffsets(leased), [0n, 1n]);
});

test('a replica that lost its lease stores nothing', async () => {
  const leased = await leasePartition();
  await database.db.query(sql`UPDATE dlq.source_partitions SET lease_until = now() WHERE id = ${leased.id}`);
  const rows = await database.db.query<{ cluster_id: string }>(
    sql`SELECT cluster_id FROM dlq.source_partitions WHERE id = ${leased.id}`,
  );
  const rescued = await claimAgain(rows[0]?.cluster_id ?? '');
  assert.ok(rescued.lease.epoch > leased.lease.epoch);
  assert.equal(
    await storeFetched(deps, leased, fetched([record(0n)], 1n)),
    null,
    'the lost lease is fenced off',
  );
  assert.deepEqual(await storedOffsets(leased), []);
  assert.equal((await storeFetched(deps, rescued, fetched([record(0n)], 1n)))?.nextOffset, 1n);
});

test('records that the database rejects are stored with their bytes alone, and their neighbours whole', async () => {
  const leased = await leasePartition();
  const poison = (letter: DeadLetter): DeadLetter => ({
    ...letter,
    errorMessage: 'with a \u0000 NUL',
    isJson: true,
  });
  const poisoned: StoreDeps = {
    ...deps,
    decode: (one, source) => {
      const letter = deps.decode(one, source);
      return one.offset % 7n === 3n ? poison(letter) : letter;
    },
  };
  const records = Array.from({ length: 50 }, (_, i) =>
    record(BigInt(i), i % 7 === 3 ? 'no json' : undefined),
  );
  const after = await storeFetched(poisoned, leased, fetched(records, 50n));
  assert.equal(after?.nextOffset, 50n);
  assert.equal((await storedOffsets(leased)).length, 50);
  const bad = await database.db.query<{ unroutable: boolean; value: string; n: bigint }>(sql`
    SELECT unroutable, convert_from(raw_value, 'UTF8') AS value, count(*) OVER () AS n FROM dlq.dlq_messages
    WHERE source_topic_id = ${leased.topicId} AND source_offset % 7 = 3`);
  assert.deepEqual(bad[0], { unroutable: true, value: 'no json', n: 7n });
  assert.ok((await accountOf(leased)).isBalanced);
});

test('reading again after a seek stores nothing twice, not even deleted or archived messages', async () => {
  const leased = await leasePartition();
  await storeFetched(
    deps,
    leased,
    fetched(
      [0n, 1n, 2n, 3n].map((n) => record(n)),
      4n,
    ),
  );
  await database.db.query(sql`
    WITH gone AS (
      DELETE FROM dlq.dlq_messages WHERE source_topic_id = ${leased.topicId} AND source_offset = 1 RETURNING *
    )
    INSERT INTO dlq.arrivals (topic_id, partition, "offset", message_id, kind)
    SELECT source_topic_id, source_partition, source_offset, id, 'deleted' FROM gone`);
  await database.db.query(sql`
    UPDATE dlq.dlq_messages SET status = 'RESOLVED' WHERE source_topic_id = ${leased.topicId} AND source_offset = 2`);
  await database.db.call(sql`CALL dlq.archive_old_dlq_messages(-1)`);

  const { clusterId } = await accountOf(leased);
  await seekToStart(leased, 'look again');
  const again = await claimAgain(clusterId);
  assert.equal(again.nextOffset, 0n);
  const after = await storeFetched(
    deps,
    again,
    fetched(
      [0n, 1n, 2n, 3n, 4n].map((n) => record(n)),
      5n,
    ),
  );
  assert.equal(after?.nextOffset, 5n);
  assert.deepEqual(await storedOffsets(leased), [0n, 3n, 4n]);
  const account = await accountOf(leased);
  assert.deepEqual([account.stored, account.reread, account.isBalanced], [5n, 4n, true]);
});

test('a seek before the first position fills in older records, and the account stays balanced', async () => {
  const leased = await leasePartition(3n);
  await storeFetched(deps, leased, fetched([record(3n), record(4n)], 5n));
  const { clusterId } = await accountOf(leased);
  await seekToStart(leased, 'from the start');
  assert.ok((await accountOf(leased)).isBalanced, 'also while it is still to be read');
  const again = await claimAgain(clusterId);
  await storeFetched(
    deps,
    again,
    fetched(
      [0n, 1n, 2n, 3n, 4n, 5n].map((n) => record(n)),
      6n,
    ),
  );
  const account = await accountOf(leased);
  assert.deepEqual([account.firstOffset, account.stored, account.reread], [0n, 6n, 2n]);
  assert.ok(account.isBalanced);
});

test('records deleted by retention before they were read are counted as lost, once', async () => {
  const leased = await leasePartition();
  assert.ok(await skipLostRecords(database.db, leased, 40n));
  assert.equal(await skipLostRecords(database.db, leased, 40n), false);
  const account = await accountOf(leased);
  assert.deepEqual([account.nextOffset, account.lost, account.isBalanced], [40n, 40n, true]);
});

test('a batch of only control records moves the position', async () => {
  const leased = await leasePartition();
  const skipped = [{ kind: 'control', from: 0n, to: 3n }] as const;
  assert.equal((await storeFetched(deps, leased, fetched([], 3n, skipped)))?.nextOffset, 3n);
  const account = await accountOf(leased);
  assert.deepEqual([account.control, account.isBalanced], [3n, true]);
});
