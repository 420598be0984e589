import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { BrokerRecord } from '../../src/platform/broker/port.ts';
import { assertError, sortedStatuses } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
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

/** The way of a dead letter: published by a consumer that failed, stored, retried, and back where it belongs. */

describe('on a real Kafka', { ...needsKafka, concurrency: true }, () => {
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

  const retry = (id: string) => system.api.post(`/api/v1/dlq/messages/${id}/retry`);

  /** The consumer fails again: it sends on what it got, as it got it, with its own error in front of it. */
  const failAgain = (dlq: string, record: BrokerRecord, error: string, topic: string) =>
    kafka.broker.publish(
      [
        {
          topic: dlq,
          key: record.key,
          value: record.value,
          headers: [
            ...record.headers,
            { key: Buffer.from('error'), value: Buffer.from(error) },
            { key: Buffer.from('original_topic'), value: Buffer.from(topic) },
          ],
        },
      ],
      { timeoutMs: 5000 },
    );

  test('a dead letter appears, is retried, and arrives byte for byte without its failure', async () => {
    const topic = await kafka.createTopic('orders.v1', 3);
    const dlq = await kafka.createTopic('orders.dlq.v1', 2);
    const key = Buffer.from([0x00, 0xff, 0x80, 0x01]);
    const value = Buffer.from('{"order_id": "123",  "price": 1.10}');
    await kafka.publish({
      topic: dlq,
      key,
      value,
      headers: [
        ['trace', 'a'],
        ['error', 'no such customer'],
        ['trace', 'b'],
        ['original_topic', topic],
        ['empty', null],
      ],
    });
    const [message] = await arrivedMessages(system.api, topic, 1);
    assert.ok(message);
    assert.deepEqual(
      [message.status, message.error_message, message.original_topic, message.source_topic, message.dialect],
      ['PENDING', 'no such customer', topic, dlq, 'plain'],
    );
    assert.deepEqual([message.key, message.key_base64], [null, key.toString('base64')]);
    assert.deepEqual(message.payload, { order_id: '123', price: 1.1 });

    const { status, body } = await system.api.post(`/api/v1/dlq/messages/${message.id}/retry`);
    assert.equal(status, 200);
    assert.deepEqual(body, {
      id: message.id,
      status: 'RESOLVED',
      message: 'message retry initiated',
      published: true,
    });
    const [record, ...others] = await kafka.read(topic);
    assert.ok(record && others.length === 0);
    assert.deepEqual([record.key, record.value], [key, value]);
    const headers = headerTexts(record.headers);
    assert.deepEqual(headers.slice(0, -1), [
      ['trace', 'a'],
      ['trace', 'b'],
      ['empty', null],
      ['redrive-message-id', message.id],
      ['redrive-attempt', '1'],
    ]);
    assert.equal(headers.at(-1)?.[0], 'redrive-original-timestamp');
    const originalMs = Number(headers.at(-1)?.[1]);
    assert.ok(originalMs <= Number(record.timestamp) && originalMs > Date.now() - 60_000);

    const history = await historyOf(system.api, message.id);
    assert.deepEqual(
      history.map(({ event }) => event),
      ['retry_started', 'published'],
    );
    const published = history[1];
    assert.deepEqual([published?.topic, published?.offset], [topic, Number(record.offset)]);
    const { resolution } = await showMessage(system.api, message.id);
    assert.equal(resolution, 'published');
  });

  test('what comes back reopens the same row, keeps its count, and is DEAD at max_retries', async () => {
    const topic = await kafka.createTopic('loop.v1');
    const dlq = await kafka.createTopic('loop.dlq.v1');
    await kafka.publish({ topic: dlq, key: 'k', value: '{"n":1}', headers: [['error', 'first']] });
    const [first] = await arrivedMessages(system.api, topic, 1);
    assert.ok(first);

    for (const attempt of [1, 2, 3]) {
      assert.equal((await retry(first.id)).status, 200);
      const record = (await kafka.read(topic)).at(-1);
      assert.ok(record);
      assert.equal(
        headerTexts(record.headers).find(([name]) => name === 'redrive-attempt')?.[1],
        String(attempt),
      );
      await failAgain(dlq, record, `failure ${attempt}`, topic);
      const back = await messageInStatus(system.api, first.id, attempt < 3 ? 'PENDING' : 'DEAD');
      assert.deepEqual(
        [back.retry_count, back.attempt_no, back.error_message, back.source_offset, back.resolution],
        [attempt, attempt, `failure ${attempt}`, first.source_offset, null],
      );
    }
    await arrivedMessages(system.api, topic, 1);
    const error = assertError(await retry(first.id), 409, 'SYS_DLQ_CONFLICT');
    assert.equal(error.message, 'message is not retryable: status=DEAD, retry_count=3/3');
    assert.deepEqual(
      (await historyOf(system.api, first.id)).map(({ event, status_to: to }) => `${event} ${to}`),
      [1, 2, 3].flatMap((attempt) => [
        'retry_started RETRYING',
        'published RESOLVED',
        `came_back ${attempt < 3 ? 'PENDING' : 'DEAD'}`,
      ]),
    );
    // The headers do not grow from round to round.
    const sizes = (await kafka.read(topic)).map((record) => record.headers.length);
    assert.deepEqual(sizes, [3, 3, 3]);
  });

  test('retry-all sends everything of a topic in order, by its original or its dead-letter name', async () => {
    const topic = await kafka.createTopic('many.v1');
    const dlq = await kafka.createTopic('many.dlq.v1');
    for (let i = 0; i < 20; i += 1) await kafka.publish({ topic: dlq, key: 'same', value: `{"i":${i}}` });
    await arrivedMessages(system.api, topic, 20);
    const { status, body } = await system.api.post(`/api/v1/dlq/${dlq}/retry-all`);
    assert.equal(status, 200);
    assert.deepEqual(body, { retried: 20, message: `20 messages retried in topic ${dlq}`, ...nothingLeft });
    const values = (await kafka.read(topic)).map((record) => record.value?.toString());
    assert.deepEqual(
      values,
      Array.from({ length: 20 }, (_, i) => `{"i":${i}}`),
    );
    const again = await system.api.post<{ retried: number }>(`/api/v1/dlq/${topic}/retry-all`);
    assert.equal(again.body.retried, 0);
  });

  test('ten simultaneous retries send one record', async () => {
    const topic = await kafka.createTopic('race.v1');
    const dlq = await kafka.createTopic('race.dlq.v1');
    await kafka.publish({ topic: dlq, value: 'x' });
    const [message] = await arrivedMessages(system.api, topic, 1);
    const answers = await Promise.all(Array.from({ length: 10 }, () => retry(message?.id ?? '')));
    assert.deepEqual(sortedStatuses(answers), [200, ...Array<number>(9).fill(409)]);
    assert.equal((await kafka.read(topic)).length, 1);
  });

  test('a topic that is made later is picked up without a restart', async () => {
    const dlq = await kafka.createTopic('later.dlq', 4);
    for (let i = 0; i < 8; i += 1) await kafka.publish({ topic: dlq, key: `k${i}`, value: `{"i":${i}}` });
    const messages = await arrivedMessages(system.api, dlq, 8);
    assert.ok(messages.every((message) => message.original_topic === kafka.name('later')));
  });

  test('a message for a topic that does not exist is 422 with the code of the broker, and costs nothing', async () => {
    const nowhere = kafka.name('never-made.v1');
    const dlq = await kafka.createTopic('refused.dlq.v1');
    await kafka.publish({ topic: dlq, value: 'x', headers: [['original_topic', nowhere]] });
    const [message] = await arrivedMessages(system.api, nowhere, 1);
    const id = message?.id ?? '';
    for (let call = 0; call < 4; call += 1) {
      const error = assertError(await retry(id), 422, 'SYS_DLQ_PUBLISH_REJECTED');
      assert.equal(error.details[0]?.reason, 'UNKNOWN_TOPIC_OR_PARTITION');
      assert.equal(error.details[0]?.field, 'broker');
      const now: MessageView = await showMessage(system.api, id);
      assert.deepEqual([now.status, now.retry_count], ['PENDING', 0]);
    }
    const last = (await historyOf(system.api, id)).at(-1);
    assert.equal(last?.event, 'released');
    assert.match(last.detail ?? '', /UNKNOWN_TOPIC_OR_PARTITION/);
  });

  test('a message that the broker refuses for itself is 422, and DEAD at max_retries', async () => {
    const topic = await kafka.createTopic('too-large.v1');
    const id = await storeMessage(system.db, {
      topic,
      payload: { text: randomBytes(1_500_000).toString('base64') },
    });
    for (const attempt of [1, 2, 3]) {
      const error = assertError(await retry(id), 422, 'SYS_DLQ_PUBLISH_REJECTED');
      assert.equal(error.details[0]?.reason, 'MESSAGE_TOO_LARGE');
      const now: MessageView = await showMessage(system.api, id);
      assert.deepEqual([now.status, now.retry_count], [attempt < 3 ? 'PENDING' : 'DEAD', attempt]);
    }
    const failures = (await historyOf(system.api, id)).filter(({ event }) => event === 'publish_failed');
    assert.deepEqual(
      failures.map((entry) => [entry.topic, entry.offset]),
      [1, 2, 3].map(() => [topic, null]),
    );
  });

  test('retry-all leaves messages for a missing topic alone and sends the others', async () => {
    const topic = await kafka.createTopic('mixed.v1');
    const dlq = await kafka.createTopic('mixed.dlq.v1');
    const nowhere = kafka.name('mixed-nowhere.v1');
    await kafka.publish({ topic: dlq, value: '1', headers: [['original_topic', nowhere]] });
    await kafka.publish({ topic: dlq, value: '2' });
    await kafka.publish({ topic: dlq, value: '3', headers: [['original_topic', nowhere]] });
    await kafka.publish({ topic: dlq, value: '4' });
    await arrivedMessages(system.api, dlq, 4);
    const { status, body } = await system.api.post(`/api/v1/dlq/${dlq}/retry-all`);
    assert.equal(status, 200);
    assert.deepEqual(body, {
      retried: 2,
      message: `2 messages retried in topic ${dlq}`,
      ...nothingLeft,
      excluded: 2,
      exclusions: [{ reason: 'target_missing', topic: nowhere, count: 2 }],
    });
    assert.deepEqual(
      (await kafka.read(topic)).map((record) => record.value?.toString()),
      ['2', '4'],
    );
  });

  test('the metrics tell what was stored and retried, and what is there', async () => {
    const topic = await kafka.createTopic('counted.v1');
    const dlq = await kafka.createTopic('counted.dlq.v1');
    for (const value of ['1', '2']) await kafka.publish({ topic: dlq, value });
    const [message] = await arrivedMessages(system.api, topic, 2);
    await retry(message?.id ?? '');
    await eventually(async () => {
      const { text } = await system.api.get('/metrics');
      const lines = text.split('\n');
      for (const line of [
        `dlq_ingested_total{topic="${dlq}"} 2`,
        `kafka_messages_consumed_total{topic="${dlq}"} 2`,
        `kafka_messages_produced_total{topic="${topic}"} 1`,
        `dlq_messages{status="PENDING",topic="${topic}"} 1`,
        `dlq_messages{status="RESOLVED",topic="${topic}"} 1`,
        `dlq_ingest_lag{topic="${dlq}",partition="0"} 0`,
      ])
        assert.ok(lines.includes(line), line);
      assert.match(text, /^dlq_retries_total\{outcome="published"\} [1-9]\d*$/m);
      assert.match(text, /^dlq_oldest_pending_seconds \d/m);
    });
  });
});
