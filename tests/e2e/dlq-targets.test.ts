import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import {
  arrivedMessages,
  historyOf,
  nothingLeft,
  showMessage,
  storeMessage,
  type MessageView,
} from '../support/stored-message.ts';
import { headerTexts, needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** A header may name any topic; the configuration and an operator decide where messages really go. */

const reason = 'checked by hand';

describe('on a real Kafka', needsKafka, () => {
  let kafka: TestKafka;
  let database: TestDatabase;
  let system: TestSystem;
  let allowed: string;
  let forbidden: string;
  let dlq: string;
  before(async () => {
    kafka = openTestKafka();
    allowed = await kafka.createTopic('allowed.v1');
    forbidden = await kafka.createTopic('secrets.v1');
    dlq = await kafka.createTopic('allowed.dlq.v1');
    database = await createTestDatabase();
    system = await startTestSystem({
      kafka: 'real',
      database,
      env: { ...kafka.env, DLQ_ALLOWED_TARGETS: JSON.stringify([kafka.name('allowed*')]) },
    });
  });
  after(async () => {
    await system.stop();
    await database.drop();
    await kafka.close();
  });
  beforeEach(() => database.db.query(sql`DELETE FROM dlq.dlq_messages`));

  const post = (id: string, action: string, body?: object) =>
    system.api.post<MessageView>(`/api/v1/dlq/messages/${id}/${action}`, body);
  const retryAll = (topic: string) => system.api.post<object>(`/api/v1/dlq/${topic}/retry-all`);
  const sentTo = async (topic: string): Promise<readonly (string | undefined)[]> =>
    (await kafka.read(topic)).map(({ value }) => value?.toString());

  test('a header does not choose a target that is not allowed; an operator does, for one message', async () => {
    for (const value of ['first', 'second'])
      await kafka.publish({ topic: dlq, value, headers: [['original_topic', forbidden]] });
    await kafka.publish({ topic: dlq, value: 'plain' });
    const messages = await arrivedMessages(system.api, dlq, 3);
    const named = messages.filter(({ original_topic: topic }) => topic === forbidden);
    assert.deepEqual(
      named.map(({ unroutable }) => unroutable),
      [false, false],
    );
    const [one, other] = named.map(({ id }) => id) as [string, string];

    const error = assertError(await post(one, 'retry'), 409, 'SYS_DLQ_CONFLICT');
    assert.match(error.message, /secrets\.v1.*dlq\.allowed_targets/);
    const exclusions = [{ reason: 'target_not_allowed', topic: forbidden, count: 2 }];
    const all = await retryAll(dlq);
    const message = `1 messages retried in topic ${dlq}`;
    assert.deepEqual(all.body, { retried: 1, message, ...nothingLeft, excluded: 2, exclusions });
    const own = await retryAll(forbidden);
    assert.deepEqual(own.body, {
      retried: 0,
      message: `0 messages retried in topic ${forbidden}`,
      ...nothingLeft,
      excluded: 2,
      exclusions,
    });
    const untouched = await showMessage(system.api, one);
    assert.deepEqual([untouched.status, untouched.retry_count, untouched.unroutable], ['PENDING', 0, false]);
    assert.deepEqual([await sentTo(forbidden), await sentTo(allowed)], [[], ['plain']]);

    const routed = await post(one, 'route', { target_topic: forbidden, reason });
    assert.deepEqual([routed.status, routed.body.original_topic], [200, forbidden]);
    assert.equal((await post(one, 'retry')).status, 200);
    assertError(await post(other, 'retry'), 409, 'SYS_DLQ_CONFLICT');
    assert.equal((await sentTo(forbidden)).length, 1);
    const entry = (await historyOf(system.api, one)).find(({ event }) => event === 'routed');
    assert.deepEqual([entry?.reason, entry?.detail], [reason, `from ${forbidden} to ${forbidden}`]);
  });

  test('a routed message goes on in a retry-all, also behind a forbidden neighbour', async () => {
    const ids = [
      await storeMessage(database.db, { topic: forbidden }),
      await storeMessage(database.db, { topic: forbidden }),
    ];
    await post(ids[1] ?? '', 'route', { target_topic: forbidden, reason });
    const { body } = await retryAll(forbidden);
    assert.deepEqual(body, {
      retried: 1,
      message: `1 messages retried in topic ${forbidden}`,
      ...nothingLeft,
      excluded: 1,
      exclusions: [{ reason: 'target_not_allowed', topic: forbidden, count: 1 }],
    });
    const statuses = await Promise.all(ids.map(async (id) => (await showMessage(system.api, id)).status));
    assert.deepEqual(statuses, ['PENDING', 'RESOLVED']);
  });

  test('a message that was routed is recognised when its earlier attempt comes back late', async () => {
    const moved = await kafka.createTopic('allowed.v2');
    await kafka.publish({ topic: dlq, key: 'k', value: 'again' });
    const [message] = await arrivedMessages(system.api, dlq, 1);
    const id = message?.id ?? '';
    assert.equal((await post(id, 'retry')).status, 200);
    const sent = (await kafka.read(allowed)).map(({ headers }) => headerTexts(headers));
    const own = sent.find((headers) =>
      headers.some(([name, value]) => name === 'redrive-message-id' && value === id),
    );
    const headers = [...(own ?? []), ['original_topic', allowed] as const].map(
      ([name, value]) => [name, value ?? ''] as const,
    );
    const comesBack = async (event: string): Promise<void> => {
      await kafka.publish({ topic: dlq, key: 'k', value: 'again', headers });
      await eventually(async () => {
        const events = (await historyOf(system.api, id)).map((entry) => entry.event);
        assert.ok(events.includes(event), events.join(', '));
      });
    };

    await comesBack('came_back');
    await post(id, 'route', { target_topic: moved, reason });
    await comesBack('repeated');
    assert.equal((await database.db.query(sql`SELECT 1 FROM dlq.dlq_messages`)).length, 1);
    assert.equal((await post(id, 'retry')).status, 200);
    assert.deepEqual(await sentTo(moved), ['again']);
  });

  test('nobody routes a message to a dead-letter topic, to one of the broker, or once it is resolved', async () => {
    const id = await storeMessage(database.db, { topic: allowed });
    for (const topic of [dlq, '__consumer_offsets', '..'])
      assertError(await post(id, 'route', { target_topic: topic, reason }), 422, 'SYS_DLQ_WRONG_TARGET');
    for (const body of [{ target_topic: allowed }, { reason }, { target_topic: 'a b', reason, more: 1 }])
      assertError(await post(id, 'route', body), 400, 'SYS_DLQ_VALIDATION_ERROR');
    const resolved = await storeMessage(database.db, { topic: allowed, status: 'RESOLVED' });
    assertError(await post(resolved, 'route', { target_topic: allowed, reason }), 409, 'SYS_DLQ_CONFLICT');
    const dead = await storeMessage(database.db, { topic: allowed, status: 'DEAD' });
    const { body } = await post(dead, 'route', { target_topic: forbidden, reason });
    assert.deepEqual([body.status, body.original_topic], ['DEAD', forbidden]);
  });
});

test('without a broker no target is checked, because nothing is published', async () => {
  const system = await startTestSystem({ env: { DLQ_ALLOWED_TARGETS: '["nothing.*"]' } });
  const id = await storeMessage(system.db, { topic: 'orders.v1' });
  const { status, body } = await system.api.post<{ published: boolean }>(`/api/v1/dlq/messages/${id}/retry`);
  assert.deepEqual([status, body.published], [200, false]);
  await system.drop();
});
