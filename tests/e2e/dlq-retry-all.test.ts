import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, beforeEach, describe, mock, test } from 'node:test';
import type { Broker, PublishResult } from '../../src/platform/broker/port.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import {
  arrivedMessages,
  nothingLeft,
  storeMessage,
  storeRecords,
  type RetryAllView,
  type StoredRecord,
} from '../support/stored-message.ts';
import { needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** What a retry-all does to many messages, what it leaves, and that its answer accounts for all of them. */

const topic = 'orders.v1';

const plain = (count: number): readonly StoredRecord[] =>
  Array.from({ length: count }, (_, i) => ({ key: `k${i % 97}`, value: `{"i":${i}}` }));

describe('retry-all', () => {
  let system: TestSystem;
  /** The broker without the tap. */
  let local: Broker;
  let tap: Partial<Pick<Broker, 'publish' | 'unwritable'>>;
  before(async () => {
    system = await startTestSystem({
      kafka: 'local',
      wrap: {
        broker: (broker): Broker => ({
          ...(local = broker),
          publish: (records, options) => (tap.publish ?? broker.publish)(records, options),
          unwritable: (topics, signal) => (tap.unwritable ?? broker.unwritable)(topics, signal),
        }),
      },
    });
    for (const name of [topic, 'orders.dlq.v1']) await local.createTopic(name, 2);
  });
  after(() => system.drop());
  beforeEach(() => {
    tap = {};
  });
  afterEach(() => system.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.message_history`));

  const retryAll = (name = topic) => system.api.post<RetryAllView>(`/api/v1/dlq/${name}/retry-all`);
  const figures = async (): Promise<readonly unknown[]> =>
    system.db.query(sql`
      SELECT status, retry_count, count(*)::int AS count FROM dlq.dlq_messages
      GROUP BY status, retry_count ORDER BY status, retry_count`);

  test('three calls while the broker is away leave a thousand messages as they were', async () => {
    await storeRecords(system.db, topic, plain(1000));
    tap = { unwritable: () => Promise.reject(new Error('connect ECONNREFUSED')) };
    for (let call = 0; call < 3; call += 1) {
      const error = assertError(await retryAll(), 503, 'SYS_DLQ_BROKER_UNAVAILABLE');
      assert.match(error.message, /ECONNREFUSED/);
    }
    assert.deepEqual(await figures(), [{ status: 'PENDING', retry_count: 0, count: 1000 }]);
  });

  test('three calls that lose the broker after the first look leave a thousand messages as they were', async () => {
    await storeRecords(system.db, topic, plain(1000));
    const away: PublishResult = {
      result: 'failed',
      fault: 'cluster',
      retriable: true,
      code: 'UNAVAILABLE',
      message: 'the broker cannot be reached',
    };
    tap = { publish: async (records) => records.map(() => away) };
    for (let call = 0; call < 3; call += 1) {
      const error = assertError(await retryAll(), 503, 'SYS_DLQ_BROKER_UNAVAILABLE');
      assert.match(error.message, /UNAVAILABLE.*1000 remaining/);
    }
    assert.deepEqual(await figures(), [{ status: 'PENDING', retry_count: 0, count: 1000 }]);
    const [last] = await system.db.query(sql`
      SELECT event, detail FROM dlq.message_history ORDER BY id DESC LIMIT 1`);
    assert.deepEqual(last, { event: 'released', detail: 'UNAVAILABLE: the broker cannot be reached' });
  });

  test('messages for a topic that does not exist are left out with the reason, not even claimed', async () => {
    await storeRecords(system.db, 'nowhere.v1', plain(1500));
    for (let call = 0; call < 4; call += 1) {
      const { status, body } = await retryAll('nowhere.v1');
      assert.equal(status, 200);
      assert.deepEqual(body, {
        retried: 0,
        message: '0 messages retried in topic nowhere.v1',
        ...nothingLeft,
        excluded: 1500,
        exclusions: [{ reason: 'target_missing', topic: 'nowhere.v1', count: 1500 }],
      });
    }
    assert.deepEqual(await figures(), [{ status: 'PENDING', retry_count: 0, count: 1500 }]);
    assert.deepEqual(await system.db.query(sql`SELECT 1 FROM dlq.message_history LIMIT 1`), []);
  });

  test('messages for a topic that we may not write to are left out, those of its neighbours go', async () => {
    await storeRecords(system.db, topic, plain(10));
    await storeRecords(system.db, 'closed.v1', plain(20));
    await system.db.query(sql`UPDATE dlq.dlq_messages SET source_topic = 'mixed.dlq.v1'`);
    const closed = { problem: 'denied', code: 'TOPIC_AUTHORIZATION_FAILED', message: 'no' } as const;
    tap = { unwritable: async () => new Map([['closed.v1', closed]]) };
    const { body } = await retryAll('mixed.dlq.v1');
    assert.deepEqual(
      [body.retried, body.excluded, body.exclusions],
      [10, 20, [{ reason: 'target_not_writable', topic: 'closed.v1', count: 20 }]],
    );
  });

  test('a topic that disappears in the middle costs no attempt, and its messages are left out from then on', async () => {
    await storeRecords(system.db, topic, plain(2500));
    let calls = 0;
    const gone: PublishResult = {
      result: 'failed',
      fault: 'topic',
      retriable: false,
      code: 'UNKNOWN_TOPIC_OR_PARTITION',
      message: 'gone',
    };
    const { publish } = local;
    tap = {
      publish: async (records, options) =>
        (calls += 1) === 1 ? publish(records, options) : records.map(() => gone),
    };
    const { body } = await retryAll();
    assert.deepEqual(body, {
      retried: 1000,
      message: `1000 messages retried in topic ${topic}`,
      ...nothingLeft,
      excluded: 1500,
      exclusions: [{ reason: 'target_missing', topic, count: 1500 }],
    });
    assert.deepEqual(await figures(), [
      { status: 'PENDING', retry_count: 0, count: 1500 },
      { status: 'RESOLVED', retry_count: 1, count: 1000 },
    ]);
  });

  test('a refused message holds back its key in the whole call, nothing else, and is never overtaken', async () => {
    const records = Array.from({ length: 2500 }, (_, i): StoredRecord => ({
      key: i % 50 === 0 ? 'a' : `k${i % 97}`,
      value: i === 100 ? randomBytes(1_100_000) : String(i),
    }));
    await storeRecords(system.db, topic, records);
    const sent: [string, string][] = [];
    const { publish } = local;
    tap = {
      async publish(outgoing, options) {
        const results = await publish(outgoing, options);
        outgoing.forEach(({ key, value }, i) => {
          if (results[i]?.result === 'acked') sent.push([String(key), String(value)]);
        });
        return results;
      },
    };
    const ofA = (): readonly number[] =>
      sent.filter(([key]) => key === 'a').map(([, value]) => Number(value));
    for (const call of [1, 2, 3]) {
      const { body } = await retryAll();
      const retried = call === 1 ? 2452 : 0;
      assert.deepEqual(body, {
        retried,
        message: `${retried} messages retried in topic ${topic}`,
        ...nothingLeft,
        failed: 1,
        skipped: 47,
      });
      assert.deepEqual(ofA(), [0, 50]);
    }
    // The refused one is DEAD now: nothing holds the others back any more, and they keep their order.
    assert.equal((await retryAll()).body.retried, 47);
    assert.deepEqual(
      ofA(),
      Array.from({ length: 50 }, (_, i) => i * 50).filter((i) => i !== 100),
    );
  });

  test('locked messages are skipped and counted', async () => {
    await storeRecords(system.db, topic, plain(10));
    await system.db.transaction(async (tx) => {
      await tx.query(sql`SELECT 1 FROM dlq.dlq_messages ORDER BY created_at LIMIT 3 FOR UPDATE`);
      const { body } = await retryAll();
      assert.deepEqual(body, {
        retried: 7,
        message: `7 messages retried in topic ${topic}`,
        ...nothingLeft,
        skipped: 3,
      });
    });
  });

  test('messages without a topic or a value are left out with the reason', async () => {
    await storeRecords(system.db, topic, plain(2));
    const valueless = await storeMessage(system.db, { topic });
    await system.db.query(sql`UPDATE dlq.dlq_messages SET payload = NULL WHERE id = ${valueless}`);
    await storeRecords(system.db, 'lost.dlq.v1', plain(3));
    await system.db.query(sql`
      UPDATE dlq.dlq_messages SET unroutable = true WHERE original_topic = 'lost.dlq.v1'`);
    const own = await retryAll();
    assert.deepEqual([own.body.retried, own.body.exclusions], [2, [{ reason: 'no_value', topic, count: 1 }]]);
    const lost = await retryAll('lost.dlq.v1');
    assert.deepEqual(
      [lost.body.retried, lost.body.exclusions],
      [0, [{ reason: 'unroutable', topic: 'lost.dlq.v1', count: 3 }]],
    );
  });

  test('a message from the future is retried: its time was not told by this database', async () => {
    await storeRecords(system.db, topic, plain(3));
    await system.db.query(sql`UPDATE dlq.dlq_messages SET created_at = created_at + interval '1 day'`);
    assert.equal((await retryAll()).body.retried, 3);
  });

  test('a topic that is only read, and has no message yet, has nothing to retry', async () => {
    await eventually(async () => {
      const { status, body } = await retryAll('orders.dlq.v1');
      assert.deepEqual([status, body.retried], [200, 0]);
    });
    assertError(await retryAll('nosuchtopic'), 404, 'SYS_DLQ_NOT_FOUND');
  });
});

test('a server that is stopped during a retry-all says what is left', async () => {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const system = await startTestSystem({
    kafka: 'local',
    wrap: {
      broker: (broker): Broker => ({
        ...broker,
        async publish(records, options) {
          reached.resolve();
          await released.promise;
          return broker.publish(records, options);
        },
      }),
    },
  });
  try {
    await system.broker?.createTopic(topic, 1);
    await storeRecords(system.db, topic, plain(2500));
    const answer = system.api.post<RetryAllView>(`/api/v1/dlq/${topic}/retry-all`);
    await reached.promise;
    const stopped = system.stop();
    await eventually(async () => {
      await assert.rejects(fetch(`${system.url}/healthz`));
    });
    released.resolve();
    const { status, body } = await answer;
    assert.deepEqual(
      [status, body.retried, body.failed, body.skipped, body.remaining],
      [200, 1000, 0, 0, 1500],
    );
    await stopped;
  } finally {
    await system.drop();
  }
});

describe('on a real Kafka', needsKafka, () => {
  let kafka: TestKafka;
  let system: TestSystem;
  before(async () => {
    kafka = openTestKafka();
    system = await startTestSystem({ kafka: 'real', env: kafka.env });
  });
  after(async () => {
    await system.drop();
    await kafka.close();
  });

  test('a broker that is away costs a thousand messages nothing, in three calls', async () => {
    const away = await startTestSystem({
      kafka: 'real',
      database: system.database,
      env: { ...kafka.env, KAFKA_BROKERS: '127.0.0.1:1', ROLES: 'api' },
    });
    try {
      await storeRecords(system.db, 'away.v1', plain(1000));
      for (let call = 0; call < 3; call += 1)
        assertError(await away.api.post('/api/v1/dlq/away.v1/retry-all'), 503, 'SYS_DLQ_BROKER_UNAVAILABLE');
      const rows = await system.db.query(sql`
        SELECT status, retry_count, count(*)::int AS count FROM dlq.dlq_messages
        WHERE original_topic = 'away.v1' GROUP BY status, retry_count`);
      assert.deepEqual(rows, [{ status: 'PENDING', retry_count: 0, count: 1000 }]);
    } finally {
      await away.drop();
    }
  });

  test('2.5 MB that came in compressed go back compressed in the same way', async () => {
    const target = await kafka.createTopic('large.v1');
    const dlq = await kafka.createTopic('large.dlq.v1');
    const value = Buffer.alloc(2_500_000, '{"order": "0123456789"} ');
    const codecs = ['gzip', 'snappy', 'lz4', 'zstd'] as const;
    const letters = codecs.map((compression) => ({ topic: dlq, key: null, value, headers: [], compression }));
    for (const { result } of await kafka.broker.publish(letters, { timeoutMs: 10_000 }))
      assert.equal(result, 'acked');
    await arrivedMessages(system.api, target, codecs.length);
    const { body } = await system.api.post<RetryAllView>(`/api/v1/dlq/${target}/retry-all`);
    assert.deepEqual([body.retried, body.failed], [4, 0]);
    const read = await kafka.read(target);
    assert.deepEqual(
      read.map(({ compression }) => compression),
      codecs,
    );
    assert.ok(read.every((record) => record.value?.equals(value)));
  });

  test('a large message whose codec is not known is sent again with gzip, in the same attempt', async () => {
    const target = await kafka.createTopic('unknown.v1');
    const id = await storeMessage(system.db, { topic: target, payload: { text: 'x'.repeat(2_500_000) } });
    assert.equal((await system.api.post(`/api/v1/dlq/messages/${id}/retry`)).status, 200);
    const [record] = await kafka.read(target);
    assert.equal(record?.compression, 'gzip');
    const [row] = await system.db.query(sql`
      SELECT retry_count, attempt_no FROM dlq.dlq_messages WHERE id = ${id}`);
    assert.deepEqual(row, { retry_count: 1, attempt_no: 1 });
  });

  test('the configured codec is used for every message, and none means none', async () => {
    const target = await kafka.createTopic('configured.v1');
    for (const codec of ['zstd', 'none']) {
      const configured = await startTestSystem({
        kafka: 'real',
        database: system.database,
        env: { ...kafka.env, ROLES: 'api', DLQ_REPUBLISH_COMPRESSION: codec },
      });
      try {
        const id = await storeMessage(system.db, {
          topic: target,
          payload: { text: 'x'.repeat(2_500_000) },
        });
        const answer = await configured.api.post(`/api/v1/dlq/messages/${id}/retry`);
        if (codec === 'zstd') assert.equal(answer.status, 200);
        else assertError(answer, 422, 'SYS_DLQ_PUBLISH_REJECTED');
      } finally {
        await configured.drop();
      }
    }
    const [record, ...others] = await kafka.read(target);
    assert.deepEqual([record?.compression, others.length], ['zstd', 0]);
  });

  test('a process whose clock is hours ahead publishes with the time of the database', async (context) => {
    const target = await kafka.createTopic('clock.v1');
    await storeRecords(system.db, target, plain(5));
    const now = Date.now.bind(Date);
    const clock = mock.method(Date, 'now', () => now() + 5 * 3_600_000);
    context.after(() => clock.mock.restore());
    const { body } = await system.api.post<RetryAllView>(`/api/v1/dlq/${target}/retry-all`);
    clock.mock.restore();
    assert.deepEqual([body.retried, body.failed], [5, 0]);
    for (const { timestamp } of await kafka.read(target))
      assert.ok(Math.abs(Number(timestamp) - now()) < 60_000);
  });

  test('a refused record holds back its key only, with everything in one partition', async () => {
    const target = await kafka.createTopic('refused.v1');
    await storeRecords(system.db, target, [
      { key: 'a', value: '1' },
      { key: 'a', value: randomBytes(1_100_000) },
      { key: 'b', value: '2' },
      { key: 'a', value: '3' },
      { key: 'b', value: '4' },
    ]);
    const { body } = await system.api.post<RetryAllView>(`/api/v1/dlq/${target}/retry-all`);
    assert.deepEqual([body.retried, body.failed, body.skipped], [3, 1, 1]);
    assert.deepEqual(
      (await kafka.read(target)).map(({ value }) => String(value)),
      ['1', '2', '4'],
    );
  });
});
