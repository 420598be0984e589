import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import {
  commandRedrive,
  endedRedrive,
  itemsOf,
  planRedrive,
  runToEnd,
  showRedrive,
} from '../support/redrives.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { historyOf, showMessage, storeMessage, storeRecords } from '../support/stored-message.ts';

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
    for (let i = 0; i < 30; i += 1) await storeMessage(system.db, { topic, status: 'DEAD', retryCount: 3 });
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

const decisions = [
  {
    kind: 'reopen',
    takes: { status: 'DEAD', retryCount: 3 },
    leaves: { status: 'PENDING', retryCount: 1 },
    event: 'reopened',
    becomes: 'PENDING',
  },
  {
    kind: 'dead',
    takes: { status: 'PENDING', retryCount: 1 },
    leaves: { status: 'DEAD', retryCount: 1 },
    event: 'marked_dead',
    becomes: 'DEAD',
  },
  {
    kind: 'delete',
    takes: { status: 'DEAD', retryCount: 3 },
    leaves: { status: 'RESOLVED', retryCount: 1 },
    event: 'deleted',
    becomes: null,
  },
] as const;

describe('a bulk decision', () => {
  for (const { kind, takes, leaves, event, becomes } of decisions)
    test(`${kind} is planned, applied once to each message, and on record`, async () => {
      const taken: string[] = [];
      for (let i = 0; i < 5; i += 1) taken.push(await storeMessage(system.db, { topic, ...takes }));
      const left = await storeMessage(system.db, { topic, ...leaves });
      const { id, counts, excluded } = await planRedrive(system.api, {
        kind,
        filter: { status: [takes.status, leaves.status] },
      });
      const isLeftByName = kind !== 'delete';
      assert.deepEqual(
        [counts['selected'], excluded],
        isLeftByName ? [5, [{ reason: 'wrong_status', count: 1, sample_ids: [left] }]] : [6, []],
      );
      for (const messageId of taken)
        assert.equal((await showMessage(system.api, messageId)).status, takes.status);

      const { receipt } = await runToEnd(system.api, id);
      assert.equal(receipt?.counts['applied'], counts['selected']);
      for (const messageId of taken) {
        const entries = await historyOf(system.api, messageId);
        assert.deepEqual(
          entries.map((entry) => [entry.event, entry.actor, entry.reason, entry.status_to, entry.detail]),
          [[event, 'anonymous', 'the consumer was fixed', becomes, `redrive ${id}`]],
        );
      }
      const rows = await system.db.query(sql`
        SELECT status, retry_count, count(*)::int AS count FROM dlq.dlq_messages WHERE id = ANY(${taken}::uuid[])
        GROUP BY status, retry_count`);
      assert.deepEqual(
        rows,
        kind === 'delete' ? [] : [{ status: becomes, retry_count: kind === 'reopen' ? 0 : 1, count: 5 }],
      );
    });

  test('does not touch resolved messages that the filter does not name', async () => {
    const resolved = await storeMessage(system.db, { topic, status: 'RESOLVED' });
    const plan = await planRedrive(system.api, { kind: 'delete', filter: { topic } });
    assert.equal(plan.counts['selected'], 0);
    const named = await planRedrive(system.api, { kind: 'delete', filter: { ids: [resolved] } });
    assert.equal(named.counts['selected'], 1);
  });

  test('skips a message that changed since the plan, and waits for one that is locked', async () => {
    const changed = await storeMessage(system.db, { topic });
    const gone = await storeMessage(system.db, { topic });
    const locked = await storeMessage(system.db, { topic });
    const { id } = await planRedrive(system.api, { kind: 'dead' });
    await system.api.post(`/api/v1/dlq/messages/${changed}/retry`);
    await system.api.delete(`/api/v1/dlq/messages/${gone}`);
    await system.db.transaction(async (tx) => {
      await tx.query(sql`SELECT 1 FROM dlq.dlq_messages WHERE id = ${locked} FOR UPDATE`);
      await commandRedrive(system.api, id, 'start');
      await eventually(async () => assert.equal((await showRedrive(system.api, id)).counts['skipped'], 2));
      assert.equal((await showRedrive(system.api, id)).counts['waiting'], 1);
    });
    await endedRedrive(system.api, id);
    const reasons = new Map((await itemsOf(system.api, id)).map((item) => [item.message_id, item.reason]));
    assert.equal(reasons.get(changed), 'changed since the plan');
    assert.equal(reasons.get(gone), 'changed since the plan');
    assert.equal(reasons.get(locked), null);
    assert.equal((await showMessage(system.api, changed)).status, 'RESOLVED');
    assert.equal((await showMessage(system.api, locked)).status, 'DEAD');
  });

  test('keeps to its rate, is paused, and a cancel accounts for the rest', async () => {
    await storeRecords(
      system.db,
      topic,
      Array.from({ length: 100 }, (_, i) => ({ key: null, value: `${i}` })),
    );
    const { id } = await planRedrive(system.api, { kind: 'dead', rate_per_second: 20 });
    await commandRedrive(system.api, id, 'start');
    await eventually(async () => assert.ok(((await showRedrive(system.api, id)).counts['applied'] ?? 0) > 0));
    await commandRedrive(system.api, id, 'pause');
    const count = async (): Promise<number> =>
      (await system.db.query(sql`SELECT 1 FROM dlq.dlq_messages WHERE status = 'DEAD'`)).length;
    const dead = await count();
    assert.ok(dead < 100);
    await commandRedrive(system.api, id, 'cancel');
    const { receipt } = await endedRedrive(system.api, id, 'cancelled');
    assert.deepEqual([receipt?.counts['applied'], receipt?.counts['cancelled']], [dead, 100 - dead]);
    assert.equal(await count(), dead);
  });

  test('is not planned over messages of a running redrive, and takes no options of sending', async () => {
    await storeMessage(system.db, { topic });
    const running = await planRedrive(system.api, { rate_per_second: 0.1 });
    await commandRedrive(system.api, running.id, 'start');
    const { excluded } = await planRedrive(system.api, { kind: 'delete' });
    assert.deepEqual(
      excluded.map(({ reason, count }) => [reason, count]),
      [['in_another_redrive', 1]],
    );
    await commandRedrive(system.api, running.id, 'cancel');
    const body = { kind: 'dead', filter: {}, reason: 'entered by hand' };
    for (const option of [{ order: 'key' }, { reopen: true }])
      assertError(
        await system.api.post('/api/v1/dlq/redrives', { ...body, ...option }),
        400,
        'SYS_DLQ_VALIDATION_ERROR',
      );
    assertError(await system.api.post('/api/v1/dlq/redrives', { kind: 'dead', filter: {} }), 400);
  });
});

test('without Kafka, a bulk decision runs, and a retry says that nothing was published', async () => {
  const without = await startTestSystem();
  try {
    await storeMessage(without.db, { topic });
    const { id } = await planRedrive(without.api, { kind: 'dead' });
    const { receipt } = await runToEnd(without.api, id);
    assert.equal(receipt?.counts['applied'], 1);

    const resolved = await storeMessage(without.db, { topic: 'no-such-topic.v1' });
    const retry = await planRedrive(without.api);
    assert.deepEqual([retry.counts['selected'], retry.counts['excluded']], [1, 1]);
    assert.equal((await runToEnd(without.api, retry.id)).receipt?.counts['not_published'], 1);
    assert.equal((await showMessage(without.api, resolved)).resolution, 'not_published');
  } finally {
    await without.drop();
  }
});
