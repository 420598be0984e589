import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Header } from '../../src/platform/broker/port.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { storeRecords } from '../support/stored-message.ts';
import { startTestConsumer, type TestConsumer } from '../support/test-consumer.ts';
import { needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** A policy with a canary, whose messages come back until a person has fixed the consumer. */

const header = (key: string, value: string): Header => ({ key: Buffer.from(key), value: Buffer.from(value) });
const count = 8;

describe('a retry policy with a canary', needsKafka, () => {
  let kafka: TestKafka;
  let system: TestSystem;
  let consumer: TestConsumer;
  let isBroken = true;
  before(async () => {
    kafka = openTestKafka();
    const [topic, deadLetterTopic] = [kafka.name('orders.v1'), kafka.name('orders.dlq.v1')];
    for (const name of ['orders.v1', 'orders.dlq.v1']) await kafka.createTopic(name);
    const canary = { stages: [1, 3], watch: '1s' };
    const policies = [{ name: 'careful', topics: [topic], delay: '1s', rate: 1000, canary }];
    const env = { ...kafka.env, DLQ_AUTO_RETRY: JSON.stringify(policies) };
    system = await startTestSystem({ kafka: 'real', env });
    consumer = startTestConsumer(kafka.broker, {
      topic,
      deadLetterTopic,
      group: kafka.name('billing'),
      judge: ({ headers }) => (isBroken ? { headers: [...headers, header('error', 'still broken')] } : null),
    });
    await storeRecords(
      system.db,
      topic,
      Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: `${i}` })),
    );
  });
  after(async () => {
    await consumer.stop();
    await system.drop();
    await kafka.close();
  });

  type Policy = Readonly<{
    state: string;
    state_reason: string;
    redrive_id: string;
    last_redrive_id: string;
  }>;
  const policy = async (): Promise<Policy> =>
    (await system.api.get<Policy>('/api/v1/dlq/policies/careful')).body;
  const stateOf = async (id: string): Promise<string> =>
    (await system.api.get<{ state: string }>(`/api/v1/dlq/redrives/${id}`)).body.state;
  const countIn = async (status: string): Promise<number> =>
    (await system.db.query(sql`SELECT 1 FROM dlq.dlq_messages WHERE status = ${status}`)).length;

  test('is disabled when its messages come back, and reports it', async () => {
    await eventually(async () => assert.equal((await policy()).state, 'disabled'));
    const { state_reason: reason, redrive_id: id } = await policy();
    assert.match(reason, /1 of 1 messages came back as dead letters/);
    assert.equal(await stateOf(id), 'stopped');
    const events = await system.db.query<{ kind: string }>(sql`
      SELECT kind FROM platform.notify_events WHERE slice = 'dlq' ORDER BY id`);
    assert.deepEqual(
      events.map(({ kind }) => kind),
      ['redrive_stopped', 'policy_disabled'],
    );
  });

  test('sends nothing while it is disabled', async () => {
    await eventually(async () => assert.equal(await countIn('PENDING'), count));
    // The one that came back is scheduled like the others, and is due.
    await eventually(async () => {
      const { body } = await system.api.get<{ due: number }>('/api/v1/dlq/policies/careful');
      assert.equal(body.due, count);
    });
    assert.equal(consumer.seen.length, 1);
  });

  test('goes on when a person has resumed it: the stopped redrive is cancelled, and the next one sends its messages', async () => {
    const { redrive_id: stopped } = await policy();
    isBroken = false;
    const body = { reason: 'the consumer was fixed' };
    assert.equal((await system.api.post('/api/v1/dlq/policies/careful/resume', body)).status, 200);
    assert.equal(await stateOf(stopped), 'cancelled');
    await eventually(async () => assert.equal(await countIn('RESOLVED'), count), { withinMs: 40_000 });
    await eventually(async () => assert.equal((await policy()).redrive_id, null));
    const { state, last_redrive_id: last } = await policy();
    assert.deepEqual([state, await stateOf(last)], ['active', 'finished']);
    assert.notEqual(last, stopped);
    assert.equal(consumer.seen.length, count + 1);
  });
});
