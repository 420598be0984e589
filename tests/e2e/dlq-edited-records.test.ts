import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { BrokerRecord } from '../../src/platform/broker/port.ts';
import { edit } from '../support/edits.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { arrivedMessages, historyOf, messageInStatus } from '../support/stored-message.ts';
import { headerTexts, needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** What an edited message is on its topic, and when it comes back. */

describe('the record of an edited message', needsKafka, () => {
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

  type Line = Readonly<{ topic: string; dlq: string; id: string }>;

  async function deadLettered(name: string): Promise<Line> {
    const topic = await kafka.createTopic(`${name}.v1`);
    const dlq = await kafka.createTopic(`${name}.dlq.v1`);
    const headers = [
      ['error', 'bad quantity'],
      ['tenant', 'acme'],
    ] as const;
    await kafka.publish({ topic: dlq, key: 'k', value: '{"qty":0}', headers });
    const [message] = await arrivedMessages(system.api, topic, 1);
    return { topic, dlq, id: message?.id ?? '' };
  }
  const retry = async (id: string): Promise<void> => {
    const { status, text } = await system.api.post(`/api/v1/dlq/messages/${id}/retry`);
    assert.equal(status, 200, text);
  };
  const deadLetter = async (dlq: string, record: BrokerRecord): Promise<void> => {
    const [result] = await kafka.broker.publish([{ topic: dlq, ...record, timestamp: 1n }], {
      timeoutMs: 5000,
    });
    assert.equal(result?.result, 'acked');
  };

  test('has the new bytes and its version, and no header of the failure', async () => {
    const { topic, id } = await deadLettered('edited');
    await edit(system.api, id, { value: '{"qty":1}', key: 'other' });
    await retry(id);
    const [sent] = await kafka.read(topic);
    assert.ok(sent);
    assert.deepEqual([sent.key?.toString(), sent.value?.toString()], ['other', '{"qty":1}']);
    const headers = new Map(headerTexts(sent.headers));
    assert.deepEqual([headers.get('tenant'), headers.get('error')], ['acme', undefined]);
    assert.deepEqual([headers.get('redrive-message-id'), headers.get('redrive-version')], [id, '1']);
  });

  test('is the same message when it comes back, and the next version has one header with its number', async () => {
    const { topic, dlq, id } = await deadLettered('returned');
    await edit(system.api, id, { value: '{"qty":1}' });
    await retry(id);
    const [first] = await kafka.read(topic);
    assert.ok(first);
    await deadLetter(dlq, first);
    const back = await messageInStatus(system.api, id, 'PENDING');
    assert.deepEqual([back.version, back.retry_count], [1, 1]);
    await edit(system.api, id, { value: '{"qty":2}' });
    await retry(id);
    const [, second] = await kafka.read(topic);
    assert.ok(second);
    const versions = headerTexts(second.headers).filter(([name]) => name === 'redrive-version');
    assert.deepEqual(versions, [['redrive-version', '2']]);
    await arrivedMessages(system.api, topic, 1);
  });

  test('of an earlier version that comes back late is recognised, also after an edit', async () => {
    const { topic, dlq, id } = await deadLettered('late');
    await retry(id);
    const [original] = await kafka.read(topic);
    assert.ok(original);
    await deadLetter(dlq, original);
    await messageInStatus(system.api, id, 'PENDING');
    await edit(system.api, id, { value: '{"qty":1}' });
    await retry(id);
    await deadLetter(dlq, original);
    await eventually(async () => {
      const events = (await historyOf(system.api, id)).map(({ event }) => event);
      assert.equal(events.at(-1), 'late_failure');
    });
    await arrivedMessages(system.api, topic, 1);
  });

  test('is compared with its original when the partition is verified', async () => {
    const { dlq, id } = await deadLettered('verified');
    await edit(system.api, id, { value: '{"qty":1}', key: null });
    const { body } = await system.api.get<Record<string, unknown>>(`/api/v1/dlq/sources/${dlq}/0/verify`);
    assert.deepEqual([body['ok'], body['different']], [true, { count: 0, offsets: [] }]);
  });
});
