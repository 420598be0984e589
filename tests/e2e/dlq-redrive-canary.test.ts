import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Header } from '../../src/platform/broker/port.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import {
  commandRedrive,
  endedRedrive,
  itemsOf,
  planRedrive,
  redriveInState,
  showRedrive,
  type RedriveView,
} from '../support/redrives.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { historyOf, storeRecords } from '../support/stored-message.ts';
import { startTestConsumer, type ConsumerOptions, type TestConsumer } from '../support/test-consumer.ts';
import { needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** A redrive that sends a few messages first, and what keeps it from sending more. */

const root = '/api/v1/dlq/redrives';

const header = (key: string, value: string): Header => ({ key: Buffer.from(key), value: Buffer.from(value) });

describe('a redrive with a canary', needsKafka, () => {
  let kafka: TestKafka;
  let system: TestSystem;
  const consumers: TestConsumer[] = [];
  before(async () => {
    kafka = openTestKafka();
    for (const name of topics) {
      await kafka.createTopic(`${name}.v1`, 2);
      await kafka.createTopic(`${name}.dlq.v1`);
    }
    system = await startTestSystem({ kafka: 'real', env: kafka.env });
  });
  after(async () => {
    await system.drop();
    await kafka.close();
  });
  afterEach(async () => {
    for (const one of consumers.splice(0)) await one.stop();
  });

  const topics = ['healthy', 'broken', 'bare', 'told', 'lag', 'paused', 'rest', 'unknown'] as const;
  type Name = (typeof topics)[number];

  /** Messages with keys and causes of their own, as the consumer group `billing` failed on them. */
  async function store(name: Name, count: number, causes = 1): Promise<string> {
    const topic = kafka.name(`${name}.v1`);
    await storeRecords(
      system.db,
      topic,
      Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: `{"i":${i}}` })),
    );
    await system.db.query(sql`
      UPDATE dlq.dlq_messages
      SET consumer_group = ${groupOf(name)}, fingerprint = 'v2:' || (convert_from(raw_value, 'UTF8')::jsonb->>'i')::int % ${causes}
      WHERE original_topic = ${topic}`);
    return topic;
  }

  const groupOf = (name: Name): string => kafka.name(`${name}.billing`);

  function consume(
    name: Name,
    options: Pick<ConsumerOptions, 'judge'> & Partial<ConsumerOptions>,
  ): TestConsumer {
    const consumer = startTestConsumer(kafka.broker, {
      topic: kafka.name(`${name}.v1`),
      deadLetterTopic: kafka.name(`${name}.dlq.v1`),
      group: groupOf(name),
      ...options,
    });
    consumers.push(consumer);
    return consumer;
  }

  /** Fails with the record's own headers, as most libraries do. */
  const fails: ConsumerOptions['judge'] = ({ headers }) => ({
    headers: [...headers, header('error', 'still broken')],
  });

  type Canary = Readonly<{ stages: readonly number[]; watch_seconds?: number; stop_percent?: number }>;

  /** Plans it; a window of less than a second keeps the test short. */
  async function plan(topic: string, canary: Canary): Promise<RedriveView> {
    const { watch_seconds: seconds = 0.2, ...sent } = canary;
    const planned = await planRedrive(system.api, { filter: { topic }, canary: sent });
    await system.db.query(sql`
      UPDATE dlq.redrives SET options = jsonb_set(options, '{canary,watch_seconds}', to_jsonb(${seconds}::float8))
      WHERE id = ${planned.id}`);
    return planned;
  }

  const sentOf = async (topic: string): Promise<number> => (await kafka.read(topic)).length;

  const waitsFor = async (id: string, pattern: RegExp): Promise<RedriveView> =>
    eventually(async () => {
      const shown = await showRedrive(system.api, id);
      assert.match(shown.waiting_for ?? '', pattern);
      return shown;
    });

  test('whose messages are processed sends stage after stage, and then the rest', async () => {
    const topic = await store('healthy', 40, 4);
    const consumer = consume('healthy', { judge: () => null });
    const { id } = await plan(topic, { stages: [1, 4, 10] });
    await commandRedrive(system.api, id, 'start');
    const { counts, stage, came_back_after: late } = await endedRedrive(system.api, id);
    assert.deepEqual(
      [counts['quiet'], counts['published'], counts['came_back'], stage, late],
      [40, 0, 0, 4, 0],
    );
    assert.equal(consumer.seen.length, 40);
    const rows = await system.db.query<{ stage: number; count: number; causes: number }>(sql`
      SELECT stage, count(*)::int AS count, count(DISTINCT fingerprint)::int AS causes
      FROM dlq.redrive_items WHERE redrive_id = ${id} GROUP BY stage ORDER BY stage`);
    assert.deepEqual(rows, [
      { stage: 1, count: 1, causes: 1 },
      { stage: 2, count: 3, causes: 3 },
      { stage: 3, count: 6, causes: 4 },
      { stage: 4, count: 30, causes: 4 },
    ]);
    const [four] = await system.db.query<{ causes: number }>(sql`
      SELECT count(DISTINCT fingerprint)::int AS causes FROM dlq.redrive_items
      WHERE redrive_id = ${id} AND stage <= 2`);
    assert.equal(four?.causes, 4);
  });

  test('whose messages come back stops by itself before the next stage, and continues when a person says so', async () => {
    const topic = await store('broken', 20);
    let isFixed = false;
    consume('broken', { judge: (record, at) => (isFixed ? null : fails(record, at)) });
    const { id } = await plan(topic, { stages: [2, 5] });
    await commandRedrive(system.api, id, 'start');
    const stopped = await redriveInState(system.api, id, 'stopped');
    assert.match(
      stopped.state_reason ?? '',
      /^\d of 2 messages came back as dead letters; the limit is 10 %; for example/,
    );
    assert.match(stopped.state_reason ?? '', /still broken/);
    await eventually(async () => assert.equal((await showRedrive(system.api, id)).counts['came_back'], 2));
    assert.equal(await sentOf(topic), 2);
    const notified = await system.db.query(sql`
      SELECT 1 FROM platform.notify_events WHERE kind = 'redrive_stopped' AND item_id = ${id}`);
    assert.equal(notified.length, 1);

    isFixed = true;
    assertError(await system.api.post(`${root}/${id}/resume`, {}), 400);
    await commandRedrive(system.api, id, 'resume', 'the consumer was fixed for good');
    const { counts, receipt } = await endedRedrive(system.api, id);
    assert.deepEqual([counts['came_back'], counts['quiet'], receipt?.counts['published']], [2, 18, 18]);
    const items = await itemsOf(system.api, id);
    assert.deepEqual(
      items.filter(({ outcome }) => outcome === 'came_back').map(({ reason }) => reason),
      ['still broken', 'still broken'],
    );
  });

  test('stops although the consumer drops all headers', async () => {
    const topic = await store('bare', 10);
    consume('bare', { judge: () => ({ headers: [] }) });
    const { id } = await plan(topic, { stages: [1, 5] });
    await commandRedrive(system.api, id, 'start');
    await redriveInState(system.api, id, 'stopped');
    assert.equal(await sentOf(topic), 1);
    const item = (await itemsOf(system.api, id)).find(({ outcome }) => outcome === 'came_back');
    const history = await historyOf(system.api, item?.message_id ?? '');
    assert.equal(history.at(-1)?.event, 'came_back');
    const rows = await system.db.query(sql`SELECT 1 FROM dlq.dlq_messages WHERE original_topic = ${topic}`);
    assert.equal(rows.length, 10);
  });

  test('stops although the consumer drops our headers and changes the value, if it names the offset', async () => {
    const topic = await store('told', 10);
    consume('told', {
      judge: ({ offset }, { partition }) => ({
        value: Buffer.from('{"wrapped":true}'),
        headers: [
          header('x-original-topic', topic),
          header('x-original-partition', String(partition)),
          header('x-original-offset', String(offset)),
        ],
      }),
    });
    const { id } = await plan(topic, { stages: [1, 5] });
    await commandRedrive(system.api, id, 'start');
    const { counts } = await redriveInState(system.api, id, 'stopped');
    assert.deepEqual([counts['came_back'], await sentOf(topic)], [1, 1]);
  });

  test('waits for a consumer that lags behind, and stops when it does not catch up', async () => {
    const topic = await store('lag', 10);
    let isLagging = true;
    consume('lag', { judge: () => null, isLagging: () => isLagging });
    const { id } = await plan(topic, { stages: [1, 2], watch_seconds: 0.05 });
    await commandRedrive(system.api, id, 'start');
    await waitsFor(id, /^consumer group \S+lag\.billing has committed no offset of \S+lag\.v1\/\d$/);
    const { state_reason: reason, counts } = await redriveInState(system.api, id, 'stopped');
    assert.match(reason ?? '', /^not confirmed within 10 windows: consumer group \S+lag\.billing/);
    assert.deepEqual([counts['quiet'], await sentOf(topic)], [0, 1]);

    isLagging = false;
    await commandRedrive(system.api, id, 'resume', 'it was restarted');
    assert.equal((await endedRedrive(system.api, id)).counts['quiet'], 10);
  });

  test('does not take silence for success where no consumer group is known', async () => {
    const topic = await store('unknown', 3);
    await system.db.query(
      sql`UPDATE dlq.dlq_messages SET consumer_group = NULL WHERE original_topic = ${topic}`,
    );
    const { id } = await plan(topic, { stages: [1], watch_seconds: 0.05 });
    await commandRedrive(system.api, id, 'start');
    const { state_reason: reason } = await redriveInState(system.api, id, 'stopped');
    assert.match(reason ?? '', /no consumer group of \S+unknown\.v1 is known/);
    assert.equal(await sentOf(topic), 1);
  });

  test('extends the window of a stage by a pause', async () => {
    const topic = await store('paused', 3);
    consume('paused', { judge: () => null });
    const { id } = await plan(topic, { stages: [1], watch_seconds: 600 });
    await commandRedrive(system.api, id, 'start');
    const watched = await eventually(async () => {
      const { watch_until: until } = await showRedrive(system.api, id);
      assert.ok(until !== null);
      return until;
    });
    await commandRedrive(system.api, id, 'pause');
    await system.db.query(sql`
      UPDATE dlq.redrives SET paused_at = paused_at - interval '1 hour' WHERE id = ${id}`);
    const { watch_until: until } = await commandRedrive(system.api, id, 'resume');
    const extendedMs = Date.parse(until ?? '') - Date.parse(watched);
    assert.ok(extendedMs >= 3_600_000 && extendedMs < 3_660_000, `${extendedMs} ms`);
    const { stage, counts } = await showRedrive(system.api, id);
    assert.deepEqual([stage, counts['published'], counts['waiting']], [1, 1, 2]);
    await commandRedrive(system.api, id, 'cancel');
  });

  test('stops while it sends the rest if too many of the latest messages come back', async () => {
    const topic = await store('rest', 200);
    let count = 0;
    consume('rest', { judge: (record, at) => ((count += 1) <= 2 ? null : fails(record, at)) });
    const { id } = await plan(topic, { stages: [2] });
    await system.db.query(sql`
      UPDATE dlq.redrives SET options = jsonb_set(options, '{rate_per_second}', '20') WHERE id = ${id}`);
    await commandRedrive(system.api, id, 'start');
    const { stage, counts } = await redriveInState(system.api, id, 'stopped');
    assert.equal(stage, 2);
    assert.ok((counts['waiting'] ?? 0) > 100, JSON.stringify(counts));
  });
});

describe('a canary without ingest or without Kafka', needsKafka, () => {
  test('does not pass while ingest stands still', async () => {
    const kafka = openTestKafka();
    const topic = await kafka.createTopic('still.v1');
    const deadLetterTopic = await kafka.createTopic('still.dlq.v1');
    const system = await startTestSystem({ kafka: 'real', env: { ...kafka.env, ROLES: 'api,workers' } });
    const consumer = startTestConsumer(kafka.broker, {
      topic,
      deadLetterTopic,
      group: kafka.name('billing'),
      judge: ({ headers }) => ({ headers }),
    });
    try {
      await storeRecords(system.db, topic, [
        { key: 'a', value: '1' },
        { key: 'b', value: '2' },
      ]);
      const { id } = await planRedrive(system.api, { canary: { stages: [1] } });
      await system.db.query(sql`
        UPDATE dlq.redrives SET options = jsonb_set(options, '{canary,watch_seconds}', '0.05')`);
      await commandRedrive(system.api, id, 'start');
      const { state_reason: reason } = await redriveInState(system.api, id, 'stopped');
      assert.match(
        reason ?? '',
        /not confirmed within 10 windows: ingest is at offset none of \S+still\.dlq\.v1\/0, before 1$/,
      );
      assert.equal((await kafka.read(topic)).length, 1);
    } finally {
      await consumer.stop();
      await system.drop();
      await kafka.close();
    }
  });

  test('is refused without Kafka, and with stages that do not ascend', async () => {
    const system = await startTestSystem();
    try {
      const body = { filter: {}, reason: 'test' };
      const refused = assertError(
        await system.api.post(root, { ...body, canary: {} }),
        422,
        'SYS_DLQ_UNSUPPORTED',
      );
      assert.match(refused.message, /needs Kafka/);
      for (const canary of [
        { stages: [5, 1] },
        { stages: [] },
        { stages: [0] },
        { watch_seconds: 0 },
        { every: 1 },
      ])
        assertError(await system.api.post(root, { ...body, canary }), 400, 'SYS_DLQ_VALIDATION_ERROR');
    } finally {
      await system.drop();
    }
  });
});
