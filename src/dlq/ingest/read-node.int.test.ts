import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import type { Broker } from '../../platform/broker/port.ts';
import { clearPayloads } from '../domain/payloads.ts';
import { listSources } from '../sources.ts';
import type { ActivePartition, LeasedPartitions } from './leased-partitions.ts';
import { addPartitions, claimPartitions } from './partitions-table.ts';
import { readNode, type ReadDeps } from './read-node.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const partition = {
  topic: 'orders.dlq.v1',
  topicId: '00000000-0000-4000-8000-000000000000',
  partition: 0,
  firstOffset: 4n,
};

test('an error of a partition without new records is stored once and cleared once, when the broker is back', async () => {
  const { db } = database;
  const worker = { ...createTestWorker(db), clock: { now: () => new Date(), monotonicMs: () => 0 } };
  await addPartitions(db, 'cluster', [partition]);
  const [leased] = await claimPartitions(worker, { clusterId: 'cluster', limit: 1, leaseMs: 60_000 });
  assert.ok(leased !== undefined);
  const active: ActivePartition = {
    leased,
    node: 1,
    isBusy: false,
    isLeaving: false,
    pausedUntilMs: 0,
    failures: 0,
    mayShowError: false,
    beyondEndSinceMs: null,
  };
  const writes: string[] = [];
  const stopping = new AbortController();
  const errorsAtFetch: (string | null | undefined)[] = [];
  const broker = {
    async fetch() {
      errorsAtFetch.push((await listSources(db))[0]?.lastError);
      if (errorsAtFetch.length === 1) throw new Error('broker unavailable');
      if (errorsAtFetch.length === 4) stopping.abort();
      const ends = { start: 0n, end: 4n, stableEnd: 4n };
      return [{ ...partition, records: [], skipped: [], nextOffset: 4n, ...ends }];
    },
  } as Partial<Broker> as Broker;
  const deps: ReadDeps = {
    payloads: clearPayloads,
    broker,
    db: {
      ...db,
      query(statement) {
        writes.push(statement.text.includes('last_error = NULL') ? 'cleared' : 'stored');
        return db.query(statement);
      },
    },
    worker,
    partitions: { all: () => [active] } as Partial<LeasedPartitions> as LeasedPartitions,
    decode: () => assert.fail('there is nothing to decode'),
    makeId: () => assert.fail('there is nothing to store'),
    storeFingerprints: async () => {},
    maxRetries: 3,
    maxBytesInFlight: 1 << 26,
    onInserted: () => {},
    onRead: () => {},
    onStored: () => {},
    onTrouble: () => {},
    onStale: () => {},
    onMoved: () => {},
  };
  await readNode(deps, 1, { bytes: 0 }, stopping.signal);
  assert.deepEqual(writes, ['stored', 'cleared']);
  assert.deepEqual(errorsAtFetch.slice(0, 2), [null, 'broker unavailable']);
  assert.equal((await listSources(db))[0]?.lastError, null);
});
