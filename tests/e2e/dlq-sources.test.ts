import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Admin } from '@platformatic/kafka';
import { createLocalBroker } from '../../src/platform/broker/local/local-broker.ts';
import { storedBytes } from '../../src/platform/broker/local/local-log.ts';
import { assertError, type ApiClient } from '../support/api-client.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import {
  archiveEverything,
  arrivedMessages,
  messageInStatus,
  showMessage,
} from '../support/stored-message.ts';
import { needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** Where the reader stands, how it is sent back, and the proof that no record is missing or taken twice. */

type Source = Readonly<{
  topic: string;
  partition: number;
  position: number;
  end: number | null;
  lag: number | null;
  owner: string | null;
  state: string;
  last_error: string | null;
  gaps: number;
  first_offset: number;
  high_offset: number;
  last_seek: Readonly<{ at: string; actor: string; reason: string; from: number; to: number }> | null;
}>;
type Account = Readonly<{
  topic: string;
  partition: number;
  first_offset: number;
  high_offset: number;
  passed: number;
  stored: number;
  reopened: number;
  folded: number;
  not_records: number;
  lost: number;
  reread: number;
  balanced: boolean;
  broker_end: number | null;
  lag: number | null;
}>;

const sourceOf = async (api: ApiClient, topic: string): Promise<Source> => {
  const { body } = await api.get<{ sources: readonly Source[] }>('/api/v1/dlq/sources');
  const found = body.sources.find((one) => one.topic === topic);
  assert.ok(found, `no source ${topic}`);
  return found;
};
const accountOf = async (api: ApiClient, topic: string): Promise<Account> => {
  const { body } = await api.get<{ partitions: readonly Account[] }>('/api/v1/dlq/accounting');
  const found = body.partitions.find((one) => one.topic === topic);
  assert.ok(found, `no account ${topic}`);
  assert.equal(
    found.passed,
    found.stored + found.reopened + found.folded + found.not_records + found.lost,
    JSON.stringify(found),
  );
  assert.equal(found.balanced, true);
  return found;
};
const seek = (api: ApiClient, topic: string, target: object) =>
  api.post<{ from: number; to: number }>(
    `/api/v1/dlq/sources/${topic}/0/seek`,
    { ...target, reason: 'look again' },
    { 'x-actor': 'ada' },
  );

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

  async function publishMany(topic: string, count: number): Promise<void> {
    for (let i = 0; i < count; i += 1) await kafka.publish({ topic, key: `k${i}`, value: `{"i":${i}}` });
  }

  test('a source shows its position, its end, its owner and no trouble', async () => {
    const dlq = await kafka.createTopic('shown.dlq.v1');
    await publishMany(dlq, 5);
    await arrivedMessages(system.api, dlq, 5);
    const source = await eventually(async () => {
      const now = await sourceOf(system.api, dlq);
      assert.equal(now.end, 5);
      return now;
    });
    assert.deepEqual(
      [source.partition, source.position, source.lag, source.state, source.last_error, source.gaps],
      [0, 5, 0, 'reading', null, 0],
    );
    assert.ok(source.owner !== null);
    assert.equal(source.last_seek, null);
    const account = await accountOf(system.api, dlq);
    assert.deepEqual([account.first_offset, account.high_offset, account.stored], [0, 5, 5]);
  });

  test('a seek to the earliest reads everything again and stores nothing twice', async () => {
    const topic = await kafka.createTopic('again.v1');
    const dlq = await kafka.createTopic('again.dlq.v1');
    await publishMany(dlq, 6);
    const messages = await arrivedMessages(system.api, topic, 6);
    const [archived, deleted, reopened, repeated] = messages.map(({ id }) => id);
    assert.ok(archived && deleted && reopened && repeated);
    for (const id of [archived, reopened, repeated])
      assert.equal((await system.api.post(`/api/v1/dlq/messages/${id}/retry`)).status, 200);
    const sent = await kafka.read(topic);
    for (const index of [1, 2, 2]) {
      const { key = null, value = null, headers = [] } = sent[index] ?? {};
      await kafka.broker.publish([{ topic: dlq, key, value, headers }], { timeoutMs: 5000 });
    }
    for (const id of [reopened, repeated]) await messageInStatus(system.api, id, 'PENDING');
    await archiveEverything(system.db);
    await system.api.delete(`/api/v1/dlq/messages/${deleted}`);
    const before = await eventually(async () => {
      const account = await accountOf(system.api, dlq);
      assert.equal(account.high_offset, 9);
      return account;
    });
    assert.deepEqual([before.stored, before.reopened, before.folded, before.reread], [6, 2, 1, 0]);

    const { status, body } = await seek(system.api, dlq, { earliest: true });
    assert.deepEqual([status, body.from, body.to], [200, 9, 0]);
    const account = await eventually(async () => {
      const now = await accountOf(system.api, dlq);
      assert.equal(now.reread, 9);
      return now;
    });
    assert.deepEqual({ ...account, reread: 0 }, before);
    assert.equal((await arrivedMessages(system.api, topic, 4)).length, 4);
    assert.equal((await showMessage(system.api, archived)).archived, true);
    assertError(await system.api.get(`/api/v1/dlq/messages/${deleted}`), 404);
    for (const id of [reopened, repeated]) assert.equal((await showMessage(system.api, id)).retry_count, 1);
    const { last_seek: last } = await sourceOf(system.api, dlq);
    assert.deepEqual([last?.actor, last?.reason, last?.from, last?.to], ['ada', 'look again', 9, 0]);
    assert.match(last?.at ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
  });

  test('a seek by offset or by time reads from there', async () => {
    const dlq = await kafka.createTopic('seeked.dlq.v1');
    await publishMany(dlq, 4);
    const middle = new Date(Date.now() + 2);
    await eventually(() => assert.ok(Date.now() > middle.getTime()));
    await publishMany(dlq, 3);
    await arrivedMessages(system.api, dlq, 7);
    for (const [target, to] of [
      [{ offset: 5 }, 5],
      [{ timestamp: middle.toISOString() }, 4],
      [{ timestamp: '1970-01-01T00:00:00Z' }, 0],
      [{ timestamp: '2999-01-01T00:00:00+09:00' }, 7],
      [{ offset: 7 }, 7],
    ] as const) {
      const { status, body, text } = await seek(system.api, dlq, target);
      assert.deepEqual([status, body.to], [200, to], text);
      await eventually(async () => assert.equal((await sourceOf(system.api, dlq)).position, 7));
    }
    const account = await accountOf(system.api, dlq);
    assert.deepEqual([account.stored, account.reread], [7, 2 + 3 + 7]);
    assertError(await seek(system.api, dlq, { offset: 8 }), 422, 'SYS_DLQ_SEEK_BEYOND_POSITION');
  });

  test('a topic that was deleted and made again is read from its start, and its rows are new', async () => {
    const dlq = await kafka.createTopic('reborn.dlq.v1');
    await publishMany(dlq, 3);
    await arrivedMessages(system.api, dlq, 3);
    await kafka.broker.deleteTopic(dlq);
    await eventually(async () => assert.equal((await sourceOf(system.api, dlq)).state, 'gone'));
    assert.equal((await sourceOf(system.api, dlq)).lag, null);
    await kafka.createTopic('reborn.dlq.v1');
    await publishMany(dlq, 2);
    await arrivedMessages(system.api, dlq, 5);
    const { body } = await system.api.get<{ balanced: boolean }>('/api/v1/dlq/accounting');
    assert.equal(body.balanced, true);
  });
});

test('records that retention removed before they were read are counted as lost, once', async () => {
  const dlq = 'short.dlq.v1';
  const broker = createLocalBroker({
    bytesPerTopic: 10 * storedBytes({ key: null, value: null, headers: [] }),
  });
  const shared = { ...broker, close: async () => {} };
  const database = await createTestDatabase();
  const start = () => startTestSystem({ kafka: 'local', database, wrap: { broker: () => shared } });
  const publish = (count: number) =>
    broker.publish(
      Array.from({ length: count }, () => ({ topic: dlq, key: null, value: null, headers: [] })),
      { timeoutMs: 1000 },
    );
  await broker.createTopic(dlq, 1);
  await publish(3);
  const first = await start();
  await arrivedMessages(first.api, dlq, 3);
  await first.stop();
  await publish(25);

  const second = await start();
  await arrivedMessages(second.api, dlq, 13);
  const { gaps, position } = await sourceOf(second.api, dlq);
  assert.deepEqual([gaps, position], [15, 28]);
  const account = await accountOf(second.api, dlq);
  assert.deepEqual([account.lost, account.stored, account.passed], [15, 13, 28]);
  await second.stop();
  await database.drop();
});

describe('taking over from a group that has committed', needsKafka, () => {
  let kafka: TestKafka;
  let database: TestDatabase;
  before(async () => {
    kafka = openTestKafka();
    database = await createTestDatabase();
  });
  after(async () => {
    await database.drop();
    await kafka.close();
  });

  async function commit(topic: string, offset: bigint): Promise<void> {
    const bootstrapBrokers = (process.env['KAFKA_BROKERS'] ?? '').split(',');
    const admin = new Admin({ clientId: 'before-us', bootstrapBrokers });
    await admin.alterConsumerGroupOffsets({
      groupId: kafka.env['KAFKA_CONSUMER_GROUP'] ?? '',
      topics: [{ name: topic, partitionOffsets: [{ partition: 0, offset }] }],
    });
    await admin.close();
  }

  test('begins where it stood, and a seek before that fills in what was before', async () => {
    const dlq = await kafka.createTopic('taken.dlq.v1');
    for (let i = 0; i < 10; i += 1) await kafka.publish({ topic: dlq, value: `{"i":${i}}` });
    await commit(dlq, 6n);

    const reader = await startTestSystem({ kafka: 'real', database, env: kafka.env });
    const taken = await arrivedMessages(reader.api, dlq, 4);
    assert.deepEqual(
      taken.map((message) => message.source_offset),
      [6, 7, 8, 9],
    );
    const first = await accountOf(reader.api, dlq);
    assert.deepEqual([first.first_offset, first.high_offset, first.stored], [6, 10, 4]);
    await reader.stop();

    // Only the API runs now, so nothing is read between the two requests.
    const idle = await startTestSystem({ kafka: 'real', database, env: { ...kafka.env, ROLES: 'api' } });
    assert.equal((await seek(idle.api, dlq, { offset: 2 })).status, 200);
    await accountOf(idle.api, dlq);
    assertError(await seek(idle.api, dlq, { offset: 4 }), 409, 'SYS_DLQ_CONFLICT');
    assertError(await seek(idle.api, dlq, { offset: 10 }), 409, 'SYS_DLQ_CONFLICT');
    await idle.stop();

    const again = await startTestSystem({ kafka: 'real', database, env: kafka.env });
    await arrivedMessages(again.api, dlq, 8);
    await eventually(async () => assert.equal((await sourceOf(again.api, dlq)).position, 10));
    const filled = await accountOf(again.api, dlq);
    assert.deepEqual([filled.first_offset, filled.stored, filled.reread], [2, 8, 4]);
    assert.equal((await seek(again.api, dlq, { earliest: true })).status, 200);
    await arrivedMessages(again.api, dlq, 10);
    await eventually(async () => assert.equal((await sourceOf(again.api, dlq)).position, 10));
    const whole = await accountOf(again.api, dlq);
    assert.deepEqual([whole.first_offset, whole.stored], [0, 10]);
    await again.stop();
  });
});

test('a source is forgotten only when nobody can read it, and goes on from its position if it comes back', async () => {
  const dlq = 'forgotten.dlq.v1';
  const broker = createLocalBroker();
  const shared = { ...broker, close: async () => {} };
  let isListed = true;
  const hiding: typeof shared = {
    ...shared,
    partitions: (matches, signal) => shared.partitions((topic) => isListed && matches(topic), signal),
  };
  const system = await startTestSystem({ kafka: 'local', wrap: { broker: () => hiding } });
  const publish = () =>
    broker.publish([{ topic: dlq, key: null, value: null, headers: [] }], { timeoutMs: 1000 });
  const forget = (topic = dlq, reason = '?reason=shut%20down') =>
    system.api.delete(`/api/v1/dlq/sources/${topic}/0${reason}`);
  try {
    await broker.createTopic(dlq, 1);
    await publish();
    const [first] = await arrivedMessages(system.api, dlq, 1);
    await system.api.post(`/api/v1/dlq/messages/${first?.id}/dead`);
    await archiveEverything(system.db);

    assertError(await forget(dlq, ''), 400);
    assertError(await forget('unknown.dlq.v1'), 404, 'SYS_DLQ_NOT_FOUND');
    assertError(await forget(), 409, 'SYS_DLQ_CONFLICT');
    isListed = false;
    await eventually(async () => assert.equal((await sourceOf(system.api, dlq)).state, 'gone'));
    assert.equal((await forget()).status, 200);
    const { body } = await system.api.get<{ sources: readonly unknown[] }>('/api/v1/dlq/sources');
    assert.deepEqual(body.sources, []);
    assertError(await forget(), 404, 'SYS_DLQ_NOT_FOUND');
    assertError(await seek(system.api, dlq, { earliest: true }), 404);

    isListed = true;
    await publish();
    const [second] = await arrivedMessages(system.api, dlq, 1);
    assert.equal(second?.source_offset, 1, 'the archived record was not taken a second time');
    assert.equal((await accountOf(system.api, dlq)).stored, 2);
  } finally {
    await system.drop();
  }
});
