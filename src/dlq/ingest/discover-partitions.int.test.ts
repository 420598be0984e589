import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Broker, PartitionListing } from '../../platform/broker/port.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { listSources } from '../sources.ts';
import { discoverPartitions } from './discover-partitions.ts';
import { addPartitions } from './partitions-table.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
afterEach(() => database.db.query(sql`TRUNCATE dlq.source_partitions`));

const topicIds: Readonly<Record<string, string>> = {
  'new.dlq': '00000000-0000-4000-8000-000000000001',
  'old.dlq': '00000000-0000-4000-8000-000000000002',
  'fine.dlq': '00000000-0000-4000-8000-000000000003',
};

const part = (topic: string, partition: number) => ({
  topic,
  topicId: topicIds[topic] ?? '',
  partition,
  start: 0n,
  end: 9n,
  stableEnd: 9n,
  node: 1,
});

/** The partitions that one discovery adds, with their first positions. */
async function discover(
  listing: Omit<PartitionListing, 'clusterId'>,
  {
    known = [],
    committed,
  }: Readonly<{ known?: readonly ReturnType<typeof part>[]; committed?: Broker['committed'] }> = {},
): Promise<readonly (readonly [string, number, bigint])[]> {
  const { db } = database;
  await addPartitions(
    db,
    'c',
    known.map((one) => ({ ...one, firstOffset: 0n })),
  );
  const broker = {
    clusterId: async () => 'c',
    partitions: async () => ({ clusterId: 'c', ...listing }),
    committed: committed ?? (async () => []),
  } as Partial<Broker> as Broker;
  await discoverPartitions(
    {
      db,
      broker,
      isDeadLetterTopic: () => true,
      namedTopics: [],
      group: 'dlq-manager.default',
      onTrouble: () => {},
    },
    new AbortController().signal,
  );
  const isKnown = (topicId: string, partition: number): boolean =>
    known.some((one) => one.topicId === topicId && one.partition === partition);
  return (await listSources(db))
    .filter(({ topicId, partition }) => !isKnown(topicId, partition))
    .map(({ topic, partition, firstOffset }) => [topic, partition, firstOffset] as const);
}

const committedAt =
  (offset: bigint, metadata: string): Broker['committed'] =>
  async (_group, partitions) =>
    partitions.map((one) => ({ ...one, offset, metadata }));

test('a new topic begins at the committed offset, a topic known by name at its start', async () => {
  const listing = { partitions: [part('new.dlq', 0), part('old.dlq', 1)], troubles: [] };
  const known = [part('old.dlq', 0)];
  assert.deepEqual(await discover(listing, { known, committed: committedAt(5n, '') }), [
    ['new.dlq', 0, 5n],
    ['old.dlq', 1, 0n],
  ]);
});

test('an offset that we committed ourselves is not a first position', async () => {
  const listing = { partitions: [part('new.dlq', 0)], troubles: [] };
  const committed = committedAt(5n, `redrive/${topicIds['new.dlq']}`);
  assert.deepEqual(await discover(listing, { committed }), [['new.dlq', 0, 0n]]);
});

test('a new topic is added only as a whole', async () => {
  const troubles = [
    { topic: 'new.dlq', partition: 1, code: 'LEADER_NOT_AVAILABLE', message: 'no leader', isDenied: false },
  ];
  const partitions = [part('new.dlq', 0), part('fine.dlq', 0)];
  assert.deepEqual(await discover({ partitions, troubles }), [['fine.dlq', 0, 0n]]);
});

test('if the committed offsets cannot be read, nothing is added', async () => {
  const listing = { partitions: [part('new.dlq', 0)], troubles: [] };
  const failing = discover(listing, { committed: () => Promise.reject(new Error('no coordinator')) });
  await assert.rejects(failing, /no coordinator/);
  assert.deepEqual(await listSources(database.db), []);
});
