import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { assertError, type ErrorBody } from '../support/api-client.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import {
  arrivedMessages,
  historyOf,
  messageInStatus,
  nothingLeft,
  showMessage,
  storeMessage,
  type MessageView,
} from '../support/stored-message.ts';
import { headerTexts, needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** Where a message goes when it is retried, and that it goes nowhere else. */

describe('on a real Kafka', needsKafka, () => {
  let kafka: TestKafka;
  let database: TestDatabase;
  let system: TestSystem | undefined;
  before(() => {
    kafka = openTestKafka();
  });
  after(() => kafka.close());
  afterEach(async () => {
    await system?.stop();
    await database.drop();
  });

  async function start(env: Readonly<Record<string, string>> = {}): Promise<TestSystem> {
    system = await startTestSystem({ kafka: 'real', database, env: { ...kafka.env, ...env } });
    return system;
  }
  const retry = ({ api }: TestSystem, id: string) =>
    api.post<ErrorBody & MessageView>(`/api/v1/dlq/messages/${id}/retry`);

  test('an unroutable message is refused with the key to set, and goes on its way once it is set', async () => {
    database = await createTestDatabase();
    const target = await kafka.createTopic('billing.v1');
    const graveyard = await kafka.createTopic('graveyard');
    for (const value of ['1', '2']) await kafka.publish({ topic: graveyard, value });
    const pattern = { KAFKA_DLQ_TOPIC_PATTERN: graveyard };

    const first = await start(pattern);
    const [message] = await arrivedMessages(first.api, graveyard, 2);
    const id = message?.id ?? '';
    assert.deepEqual([message?.unroutable, message?.original_topic], [true, graveyard]);
    const error = assertError(await retry(first, id), 409, 'SYS_DLQ_CONFLICT');
    assert.match(error.message, /dlq\.original_topic_rules/);
    const all = await first.api.post(`/api/v1/dlq/${graveyard}/retry-all`);
    assert.deepEqual(all.body, {
      retried: 0,
      message: `0 messages retried in topic ${graveyard}`,
      ...nothingLeft,
      excluded: 2,
      exclusions: [{ reason: 'unroutable', topic: graveyard, count: 2 }],
    });
    const untouched = await showMessage(first.api, id);
    assert.deepEqual([untouched.status, untouched.retry_count], ['PENDING', 0]);
    await first.stop();

    const rules = JSON.stringify([{ match: graveyard, topic: target }]);
    const second = await start({ ...pattern, DLQ_ORIGINAL_TOPIC_RULES: rules });
    assert.equal((await retry(second, id)).status, 200);
    const routed = await showMessage(second.api, id);
    assert.deepEqual([routed.unroutable, routed.original_topic], [false, target]);
    const rest = await second.api.post<{ retried: number }>(`/api/v1/dlq/${graveyard}/retry-all`);
    assert.deepEqual(rest.body, {
      retried: 1,
      message: `1 messages retried in topic ${graveyard}`,
      ...nothingLeft,
    });
    assert.deepEqual(
      (await kafka.read(target)).map((record) => record.value?.toString()),
      ['1', '2'],
    );
    assert.equal((await kafka.read(graveyard)).length, 2);
  });

  test('no message is sent to a topic of dead letters, whoever says so', async () => {
    database = await createTestDatabase();
    const dlq = await kafka.createTopic('circle.dlq.v1');
    const other = await kafka.createTopic('other.dlq.v1');
    await kafka.publish({ topic: dlq, value: 'told', headers: [['original_topic', other]] });
    await kafka.publish({ topic: dlq, value: 'itself', headers: [['original_topic', dlq]] });
    const { api, db } = await start();
    const told = await arrivedMessages(api, dlq, 2);
    for (const message of told) assert.notEqual(message.original_topic, other);

    // A row of an older system may name the dead-letter topic itself: it belongs where that one's name points.
    const target = await kafka.createTopic('other.v1');
    const byHand = await storeMessage(db, { topic: other });
    for (const topic of [dlq, other]) await api.post(`/api/v1/dlq/${topic}/retry-all`);
    assert.deepEqual(
      [(await showMessage(api, byHand)).original_topic, (await kafka.read(target)).length],
      [target, 1],
    );
    assert.deepEqual([(await kafka.read(dlq)).length, (await kafka.read(other)).length], [2, 0]);
  });

  test('a topic that has become one of dead letters gets nothing any more', async () => {
    database = await createTestDatabase();
    const topic = await kafka.createTopic('turned.v1');
    const dlq = await kafka.createTopic('turned.dlq.v1');
    await kafka.publish({ topic: dlq, value: '1' });
    const before = await start();
    const [message] = await arrivedMessages(before.api, topic, 1);
    const id = message?.id ?? '';
    await before.stop();

    const { api } = await start({ KAFKA_DLQ_TOPIC_PATTERN: `${kafka.name('turned')}*` });
    assertError(await api.post(`/api/v1/dlq/messages/${id}/retry`), 409, 'SYS_DLQ_CONFLICT');
    for (const name of [topic, dlq]) {
      const { status, body } = await api.post<{ retried: number }>(`/api/v1/dlq/${name}/retry-all`);
      assert.deepEqual([status, body.retried], [200, 0]);
    }
    const { status, retry_count: count } = await showMessage(api, id);
    assert.deepEqual([status, count], ['PENDING', 0]);
    assert.equal((await kafka.read(topic)).length, 0);
  });

  test('a row that was inserted by hand is sent as its payload', async () => {
    database = await createTestDatabase();
    const topic = await kafka.createTopic('by-hand.v1');
    const id = await storeMessage(database.db, { topic, payload: { order_id: 'ü' } });
    const { api } = await start();
    assert.equal((await api.post(`/api/v1/dlq/messages/${id}/retry`)).status, 200);
    const [record] = await kafka.read(topic);
    assert.deepEqual([record?.key, record?.value?.toString()], [null, '{"order_id": "ü"}']);
  });

  test('with republish_key uuid the key is new each time, and what comes back is still recognised', async () => {
    database = await createTestDatabase();
    const topic = await kafka.createTopic('rekeyed.v1');
    const dlq = await kafka.createTopic('rekeyed.dlq.v1');
    await kafka.publish({ topic: dlq, key: 'mine', value: '1' });
    const { api } = await start({ DLQ_REPUBLISH_KEY: 'uuid' });
    const [message] = await arrivedMessages(api, topic, 1);
    const id = message?.id ?? '';
    const keys = new Set<string>();
    for (const attempt of [1, 2]) {
      assert.equal((await api.post(`/api/v1/dlq/messages/${id}/retry`)).status, 200);
      const record = (await kafka.read(topic)).at(-1);
      assert.ok(record?.key);
      assert.match(record.key.toString(), /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
      keys.add(record.key.toString());
      await kafka.broker.publish([{ topic: dlq, ...record }], { timeoutMs: 5000 });
      assert.equal((await messageInStatus(api, id, 'PENDING')).retry_count, attempt);
    }
    assert.equal(keys.size, 2);
    assert.equal((await showMessage(api, id)).key, 'mine');
    await arrivedMessages(api, topic, 1);
  });

  test('a Spring dead letter goes to the topic that its headers tell, without them', async () => {
    database = await createTestDatabase();
    const topic = await kafka.createTopic('spring-target.v1');
    const dlq = await kafka.createTopic('spring.dlq.v1');
    const int32 = Buffer.alloc(4);
    int32.writeInt32BE(7);
    await kafka.publish({
      topic: dlq,
      value: '1',
      headers: [
        ['kafka_dlt-original-topic', topic],
        ['kafka_dlt-original-partition', int32],
        ['mine', 'stays'],
        ['kafka_dlt-exception-fqcn', 'java.lang.IllegalStateException'],
        ['kafka_dlt-exception-message', 'no'],
      ],
    });
    const { api } = await start();
    const [message] = await arrivedMessages(api, topic, 1);
    assert.deepEqual(
      [message?.dialect, message?.error_class, message?.error_message],
      ['spring-kafka', 'java.lang.IllegalStateException', 'no'],
    );
    await api.post(`/api/v1/dlq/messages/${message?.id}/retry`);
    const [record] = await kafka.read(topic);
    assert.deepEqual(
      headerTexts(record?.headers ?? []).map(([name]) => name),
      ['mine', 'redrive-message-id', 'redrive-attempt', 'redrive-original-timestamp'],
    );
  });
});

test('while the broker is away a retry is 503 and costs nothing, and retry-all does not begin', async () => {
  const env = { KAFKA_BROKERS: '127.0.0.1:1', KAFKA_PUBLISH_TIMEOUT: '300ms' };
  const system = await startTestSystem({ env: { ...env, KAFKA_ENABLED: 'true' } });
  try {
    const { api, db } = system;
    const id = await storeMessage(db, { topic: 'away.v1' });
    const error = assertError(
      await api.post(`/api/v1/dlq/messages/${id}/retry`),
      503,
      'SYS_DLQ_BROKER_UNAVAILABLE',
    );
    assert.equal(error.details[0]?.field, 'broker');
    const failed = await showMessage(api, id);
    assert.deepEqual([failed.status, failed.retry_count], ['PENDING', 0]);
    assert.equal((await historyOf(api, id)).at(-1)?.event, 'released');

    const ready = await api.get<{ status: string; checks: { kafka: { status: string } } }>('/readyz');
    assert.deepEqual(
      [ready.status, ready.body.status, ready.body.checks.kafka.status],
      [200, 'degraded', 'degraded'],
    );
    const all = await api.post(`/api/v1/dlq/away.v1/retry-all`);
    assertError(all, 503, 'SYS_DLQ_BROKER_UNAVAILABLE');
    assert.match(all.headers.get('retry-after') ?? '', /^\d+$/);
    assert.equal((await showMessage(api, id)).status, 'PENDING');
  } finally {
    await system.drop();
  }
});
