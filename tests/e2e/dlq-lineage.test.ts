import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { BrokerRecord } from '../../src/platform/broker/port.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import {
  archiveEverything,
  arrivedMessages,
  historyOf,
  messageInStatus,
  showMessage,
} from '../support/stored-message.ts';
import { needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** Which dead letter is a message that was re-driven before, and which only looks like one. */

describe('a dead letter with our headers', needsKafka, () => {
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

  type Line = Readonly<{ topic: string; dlq: string; id: string; sent: BrokerRecord }>;

  /** A message of a topic of its own that was retried once: the row, and the record that was sent. */
  async function retriedOnce(name: string): Promise<Line> {
    const topic = await kafka.createTopic(`${name}.v1`);
    const dlq = await kafka.createTopic(`${name}.dlq.v1`);
    await kafka.publish({ topic: dlq, key: 'k', value: '{"n":1}', headers: [['error', 'first']] });
    const [message] = await arrivedMessages(system.api, topic, 1);
    const id = message?.id ?? '';
    await retry(id);
    const [sent] = await kafka.read(topic);
    assert.ok(sent);
    return { topic, dlq, id, sent };
  }

  const retry = async (id: string): Promise<void> => {
    const { status, text } = await system.api.post(`/api/v1/dlq/messages/${id}/retry`);
    assert.equal(status, 200, text);
  };

  /** Dead-letters a record as a consumer does, with its headers and these besides. */
  async function deadLetter(
    dlq: string,
    record: Pick<BrokerRecord, 'key' | 'value' | 'headers'>,
    more: Readonly<Record<string, string>> = {},
  ): Promise<bigint> {
    const added = Object.entries(more).map(([key, value]) => ({
      key: Buffer.from(key),
      value: Buffer.from(value),
    }));
    const outgoing = { topic: dlq, ...record, headers: [...record.headers, ...added] };
    const [result] = await kafka.broker.publish([outgoing], { timeoutMs: 5000 });
    assert.ok(result?.result === 'acked');
    return result.offset;
  }

  const accountOf = async (topic: string): Promise<Record<string, unknown>> => {
    const { body } = await system.api.get<{ partitions: Record<string, unknown>[] }>(
      '/api/v1/dlq/accounting',
    );
    return body.partitions.find((one) => one['topic'] === topic) ?? {};
  };

  describe('at the same time as others', { concurrency: true }, () => {
    test('on another message it is a child with a row of its own, which shares the budget of its topic', async () => {
      const { topic, dlq, id, sent } = await retriedOnce('copied');
      await deadLetter(dlq, { ...sent, value: Buffer.from('{"n":2}') }, { error: 'other' });
      const [parent, child] = await arrivedMessages(system.api, topic, 2);
      assert.deepEqual([parent?.id, parent?.status], [id, 'RESOLVED']);
      assert.deepEqual([child?.parent_id, child?.status, child?.retry_count], [id, 'PENDING', 1]);
    });

    test('on another message that names the same original topic the child inherits the count', async () => {
      const { topic, dlq, id, sent } = await retriedOnce('inherited');
      await deadLetter(
        dlq,
        { ...sent, value: Buffer.from('{"n":2}') },
        { original_topic: topic, error: 'x' },
      );
      const [, child] = await arrivedMessages(system.api, topic, 2);
      assert.deepEqual([child?.parent_id, child?.status, child?.retry_count], [id, 'PENDING', 1]);
    });

    test('that failed on another topic is a child, though its bytes are the same', async () => {
      const { topic, dlq, id, sent } = await retriedOnce('forwarded');
      const other = kafka.name('forwarded-elsewhere.v1');
      await deadLetter(dlq, sent, { original_topic: other });
      const [, child] = await arrivedMessages(system.api, dlq, 2);
      assert.deepEqual([child?.parent_id, child?.original_topic, child?.retry_count], [id, other, 0]);
      assert.equal((await showMessage(system.api, id)).status, 'RESOLVED');
      assert.equal((await arrivedMessages(system.api, topic, 1)).length, 1);
    });

    test('without a told topic and without an attempt it is the same message', async () => {
      const { topic, dlq, id, sent } = await retriedOnce('bare');
      const headers = sent.headers.filter(({ key }) => key.toString() === 'redrive-message-id');
      await deadLetter(dlq, { ...sent, headers });
      const back = await messageInStatus(system.api, id, 'PENDING');
      assert.deepEqual([back.retry_count, back.error_message], [1, 'unknown error']);
      await arrivedMessages(system.api, topic, 1);
    });

    test('of an earlier attempt it is a line of history and nothing else', async () => {
      const { dlq, id, sent } = await retriedOnce('late');
      await deadLetter(dlq, sent, { error: 'second failure' });
      await messageInStatus(system.api, id, 'PENDING');
      await retry(id);
      await deadLetter(dlq, sent, { error: 'late failure' });
      await eventually(async () => {
        const history = await historyOf(system.api, id);
        assert.equal(history.at(-1)?.event, 'late_failure');
      });
      const message = await showMessage(system.api, id);
      assert.deepEqual(
        [message.status, message.retry_count, message.error_message],
        ['RESOLVED', 2, 'second failure'],
      );
      const { stored, reopened, folded, balanced } = await accountOf(dlq);
      assert.deepEqual([stored, reopened, folded, balanced], [1, 1, 1, true]);
    });

    test('that is repeated keeps the status and replaces the error', async () => {
      const { topic, dlq, id, sent } = await retriedOnce('repeated');
      for (const error of ['one', 'two', 'three']) await deadLetter(dlq, sent, { error });
      await eventually(async () => {
        assert.equal((await showMessage(system.api, id)).error_message, 'three');
      });
      const message = await showMessage(system.api, id);
      assert.deepEqual([message.status, message.retry_count], ['PENDING', 1]);
      await arrivedMessages(system.api, topic, 1);
      const { stored, reopened, folded, balanced } = await accountOf(dlq);
      assert.deepEqual([stored, reopened, folded, balanced], [1, 1, 2, true]);
    });

    test('of a deleted message is a new one', async () => {
      const { topic, dlq, id, sent } = await retriedOnce('deleted');
      await system.api.delete(`/api/v1/dlq/messages/${id}`);
      await deadLetter(dlq, sent, { error: 'again' });
      const [message] = await arrivedMessages(system.api, topic, 1);
      assert.notEqual(message?.id, id);
      assert.deepEqual([message?.parent_id, message?.retry_count], [null, 0]);
    });

    test('that are forged or malformed is a new one', async () => {
      const topic = await kafka.createTopic('forged.v1');
      const dlq = await kafka.createTopic('forged.dlq.v1');
      const forged = [randomUUID(), 'x', '', "';--", randomUUID().toUpperCase(), '0'.repeat(36), '\0'];
      for (const id of forged)
        await kafka.publish({
          topic: dlq,
          value: '1',
          headers: [
            ['redrive-message-id', id],
            ['redrive-attempt', '99999999999999999999'],
          ],
        });
      await kafka.publish({ topic: dlq, value: '1', headers: [['redrive-message-id', null]] });
      const messages = await arrivedMessages(system.api, topic, forged.length + 1);
      assert.ok(messages.every((message) => message.status === 'PENDING' && message.parent_id === null));
    });

    test('with the last of several ids decides', async () => {
      const { topic, dlq, id, sent } = await retriedOnce('several');
      const [first, ...rest] = sent.headers;
      assert.ok(first);
      const stale = { key: Buffer.from('redrive-message-id'), value: Buffer.from(randomUUID()) };
      await deadLetter(dlq, { ...sent, headers: [stale, first, ...rest] });
      await messageInStatus(system.api, id, 'PENDING');
      await arrivedMessages(system.api, topic, 1);
    });

    test('whose inherited budget is spent is dead on arrival', async () => {
      const { topic, dlq, id, sent } = await retriedOnce('spent');
      let record = sent;
      for (let attempt = 1; attempt < 3; attempt += 1) {
        await deadLetter(dlq, record);
        await messageInStatus(system.api, id, 'PENDING');
        await retry(id);
        record = (await kafka.read(topic)).at(-1) ?? sent;
      }
      await deadLetter(dlq, { ...record, value: Buffer.from('changed') }, { original_topic: topic });
      const child = (await arrivedMessages(system.api, topic, 2)).find((one) => one.id !== id);
      assert.deepEqual([child?.parent_id, child?.status, child?.retry_count], [id, 'DEAD', 3]);
      const told = await system.db.query(sql`
        SELECT kind FROM platform.notify_events WHERE slice = 'dlq' AND item_id = ${child?.id}`);
      assert.deepEqual(told, [{ kind: 'dead' }]);
    });
  });

  // By itself: it archives whatever is resolved.
  test('of an archived message moves it back', async () => {
    const { topic, dlq, id, sent } = await retriedOnce('archived');
    await archiveEverything(system.db);
    assert.equal((await showMessage(system.api, id)).archived, true);
    await deadLetter(dlq, sent, { error: 'back from the archive' });
    const back = await messageInStatus(system.api, id, 'PENDING');
    assert.deepEqual([back.archived, back.error_message], [false, 'back from the archive']);
    await arrivedMessages(system.api, topic, 1);
  });
});
