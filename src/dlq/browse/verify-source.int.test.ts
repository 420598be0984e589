import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Broker } from '../../platform/broker/port.ts';
import { clearPayloads } from '../domain/payloads.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createSourceVerifier } from './verify-source.ts';

const partition = {
  topic: 'orders.dlq.v1',
  topicId: '00000000-0000-4000-8000-000000000000',
  partition: 0,
};

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
  await database.db.query(sql`
    INSERT INTO dlq.source_partitions
      (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset, log_start)
    VALUES ('cluster', ${partition.topic}, ${partition.topicId}, 0, 0, 1, 1, 0)`);
});
after(() => database.drop());

const request = { topic: partition.topic, partition: 0, from: null, to: null };

test('verifies one range at a time, on its own connections and with reserved memory', async () => {
  const fetching = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const purposes: (string | undefined)[] = [];
  const reserved: number[] = [];
  const reserve = async (bytes: number): Promise<void> => void reserved.push(bytes);
  const verify = createSourceVerifier({
    payloads: clearPayloads,
    db: database.db,
    broker: {
      async fetch(_positions, limits) {
        purposes.push(limits.purpose);
        fetching.resolve();
        await answered.promise;
        const skipped = [{ kind: 'gap', from: 0n, to: 1n }] as const;
        return [{ ...partition, records: [], skipped, nextOffset: 1n, start: 0n, end: 1n, stableEnd: 1n }];
      },
    } as Partial<Broker> as Broker,
  });

  const first = verify(request, reserve);
  await fetching.promise;
  await assert.rejects(verify(request, reserve), { code: 'SYS_DLQ_VERIFY_BUSY', retryAfterMs: 1000 });
  answered.resolve();
  assert.equal((await first).gaps, 1n);
  const noRoom = new Error('no room');
  await assert.rejects(
    verify(request, () => Promise.reject(noRoom)),
    noRoom,
  );
  assert.equal((await verify(request, reserve)).gaps, 1n);
  assert.deepEqual(
    [purposes, reserved],
    [
      ['verify', 'verify'],
      [8 << 20, 8 << 20],
    ],
  );
});
