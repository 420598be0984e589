import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { endedRedrive, commandRedrive, itemsOf, planRedrive, runToEnd } from '../support/redrives.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { historyOf, showMessage, storeMessage } from '../support/stored-message.ts';

/** Redrives of messages that a retry leaves alone. */

const topic = 'orders.v1';

let system: TestSystem;
before(async () => {
  system = await startTestSystem({ kafka: 'local' });
  await system.broker?.createTopic(topic, 2);
});
after(() => system.drop());
afterEach(() =>
  system.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items`),
);

describe('with reopen', () => {
  test('takes dead and spent messages with a new budget, on record', async () => {
    const dead = await storeMessage(system.db, { topic, status: 'DEAD', retryCount: 3 });
    const spent = await storeMessage(system.db, { topic, retryCount: 3 });
    const fresh = await storeMessage(system.db, { topic, retryCount: 1 });
    const { id, counts } = await planRedrive(system.api, { reopen: true });
    assert.deepEqual([counts['selected'], counts['excluded']], [3, 0]);
    const { receipt } = await runToEnd(system.api, id);
    assert.equal(receipt?.counts['published'], 3);

    for (const [messageId, was, retryCount] of [
      [dead, 'DEAD', 1],
      [spent, 'PENDING', 1],
      [fresh, null, 2],
    ] as const) {
      const { status, retry_count } = await showMessage(system.api, messageId);
      assert.deepEqual([status, retry_count], ['RESOLVED', retryCount]);
      const [first] = await historyOf(system.api, messageId);
      if (was === null) assert.equal(first?.event, 'retry_started');
      else
        assert.deepEqual(
          [first?.event, first?.actor, first?.reason, first?.status_from, first?.status_to, first?.detail],
          ['reopened', 'anonymous', 'the consumer was fixed', was, 'PENDING', `redrive ${id}`],
        );
    }
  });

  test('leaves those as they were that it does not reach', async () => {
    for (let i = 0; i < 30; i += 1)
      await storeMessage(system.db, { topic, status: 'DEAD', retryCount: 3 });
    const { id } = await planRedrive(system.api, { reopen: true, rate_per_second: 1 });
    await commandRedrive(system.api, id, 'start');
    await commandRedrive(system.api, id, 'cancel');
    const { receipt } = await endedRedrive(system.api, id, 'cancelled');
    const cancelled = receipt?.counts['cancelled'] ?? 0;
    assert.ok(cancelled >= 28);
    const rows = await system.db.query(sql`
      SELECT 1 FROM dlq.dlq_messages WHERE status = 'DEAD' AND retry_count = 3 AND lease_epoch = 0`);
    assert.equal(rows.length, cancelled);
  });

  test('waits for a dead message that another transaction has locked', async () => {
    const id = await storeMessage(system.db, { topic, status: 'DEAD', retryCount: 3 });
    const plan = await planRedrive(system.api, { reopen: true });
    await system.db.transaction(async (tx) => {
      await tx.query(sql`SELECT 1 FROM dlq.dlq_messages WHERE id = ${id} FOR UPDATE`);
      await commandRedrive(system.api, plan.id, 'start');
      const [item] = await itemsOf(system.api, plan.id);
      assert.equal(item?.outcome, 'waiting');
    });
    const { receipt } = await endedRedrive(system.api, plan.id);
    assert.equal(receipt?.counts['published'], 1);
  });
});

test('without reopen, dead and spent messages are counted with the reason', async () => {
  const dead = await storeMessage(system.db, { topic, status: 'DEAD', retryCount: 3 });
  const spent = await storeMessage(system.db, { topic, retryCount: 3 });
  const marked = await storeMessage(system.db, { topic, status: 'DEAD', retryCount: 1 });
  const { counts, excluded } = await planRedrive(system.api);
  assert.equal(counts['selected'], 0);
  const byReason = new Map(excluded.map(({ reason, sample_ids }) => [reason, sample_ids.toSorted()]));
  assert.deepEqual(byReason.get('attempts_used_up'), [dead, spent].toSorted());
  assert.deepEqual(byReason.get('dead'), [marked]);
});
