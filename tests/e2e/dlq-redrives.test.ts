import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Broker, OutgoingRecord, PublishResult } from '../../src/platform/broker/port.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import {
  commandRedrive,
  endedRedrive,
  itemsOf,
  planRedrive,
  redriveInState,
  runToEnd,
  showRedrive,
} from '../support/redrives.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { historyOf, storeMessage, storeRecords, type StoredRecord } from '../support/stored-message.ts';

/** A redrive from its plan to its receipt, and what it leaves alone. */

const topic = 'orders.v1';
const root = '/api/v1/dlq/redrives';

const plain = (count: number): readonly StoredRecord[] =>
  Array.from({ length: count }, (_, i) => ({ key: `k${i % 97}`, value: `{"i":${i}}` }));

const down: PublishResult = {
  result: 'failed',
  fault: 'cluster',
  retriable: true,
  code: 'UNAVAILABLE',
  message: 'the broker cannot be reached',
};

const refused: PublishResult = {
  result: 'failed',
  fault: 'record',
  retriable: false,
  code: 'INVALID_RECORD',
  message: 'the record was refused',
};

describe('a redrive', () => {
  let system: TestSystem;
  let local: Broker;
  let publish: Broker['publish'] | null;
  let sent: OutgoingRecord[];
  before(async () => {
    system = await startTestSystem({
      kafka: 'local',
      wrap: {
        broker: (broker): Broker => ({
          ...(local = broker),
          publish(records, options) {
            sent.push(...records);
            return (publish ?? broker.publish)(records, options);
          },
        }),
      },
    });
    for (const name of [topic, 'invoices.v1']) await local.createTopic(name, 2);
  });
  after(() => system.drop());
  beforeEach(() => {
    publish = null;
    sent = [];
  });
  afterEach(() =>
    system.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items`),
  );

  const idAt = async (place: number): Promise<string> => {
    const [row] = await system.db.query<{ id: string }>(sql`
      SELECT id FROM dlq.dlq_messages ORDER BY created_at, id OFFSET ${place} LIMIT 1`);
    return row?.id ?? assert.fail('no message');
  };

  test('publishes what it planned, once, and its receipt adds up', async () => {
    await storeRecords(system.db, topic, plain(2500));
    const { id, counts, targets } = await planRedrive(system.api, { filter: { topic } });
    assert.deepEqual([counts['selected'], counts['waiting'], counts['excluded']], [2500, 2500, 0]);
    assert.deepEqual(targets, [{ topic, count: 2500, groups: [], failed_groups: [] }]);
    await storeRecords(system.db, topic, plain(3));

    const { receipt } = await runToEnd(system.api, id);
    assert.equal(receipt?.counts['published'], 2500);
    const [started] = await historyOf(system.api, await idAt(0));
    assert.deepEqual([started?.event, started?.redrive_id], ['retry_started', id]);
    assert.equal(sent.length, 2500);
    const statuses = await system.db.query(sql`
      SELECT status, count(*)::int AS count FROM dlq.dlq_messages GROUP BY status ORDER BY status`);
    assert.deepEqual(statuses, [
      { status: 'PENDING', count: 3 },
      { status: 'RESOLVED', count: 2500 },
    ]);
    const told = await system.db.query<{ summary: string }>(sql`
      SELECT summary FROM platform.notify_events WHERE kind = 'redrive_finished' AND item_id = ${id}`);
    assert.deepEqual(told, [{ summary: '2500 messages: 2500 published' }]);
  });

  test('counts what it leaves out, with the reason and examples', async () => {
    await storeRecords(system.db, topic, plain(2));
    await storeRecords(system.db, 'missing.v1', plain(3));
    const spent = await storeMessage(system.db, { topic, retryCount: 3 });
    const dead = await storeMessage(system.db, { topic, status: 'DEAD' });
    const working = await storeMessage(system.db, { topic, status: 'RETRYING' });
    await system.db.query(sql`
      UPDATE dlq.dlq_messages SET lease_until = clock_timestamp() + interval '1 hour', lease_owner = 'another'
      WHERE id = ${working}`);
    const filter = { status: ['PENDING', 'RETRYING', 'DEAD'] };
    const { counts, excluded } = await planRedrive(system.api, { filter });
    assert.deepEqual([counts['selected'], counts['excluded']], [2, 6]);
    const byReason = new Map(excluded.map(({ reason, sample_ids }) => [reason, sample_ids]));
    assert.equal(byReason.get('target_missing')?.length, 3);
    assert.deepEqual(byReason.get('attempts_used_up'), [spent]);
    assert.deepEqual(byReason.get('dead'), [dead]);
    assert.deepEqual(byReason.get('being_retried'), [working]);
  });

  test('skips a message that can no longer be sent', async () => {
    await storeRecords(system.db, topic, [
      { key: 'a', value: '1' },
      { key: 'b', value: '3' },
    ]);
    const { id } = await planRedrive(system.api);
    // A pointer of a share group, which has no value of its own.
    await system.db.query(sql`
      UPDATE dlq.dlq_messages SET source_topic = 'orders.dlq', dialect = 'share-group', message_key = NULL, raw_value = NULL
      WHERE id = ${await idAt(0)}`);
    await runToEnd(system.api, id);
    assert.deepEqual(
      (await itemsOf(system.api, id)).map(({ outcome, reason }) => [outcome, reason]),
      [
        ['skipped', 'it was stored without its value'],
        ['published', null],
      ],
    );
    const { body } = await system.api.get<{ status: string; retry_count: number }>(
      `/api/v1/dlq/messages/${await idAt(0)}`,
    );
    assert.deepEqual([body.status, body.retry_count], ['PENDING', 0]);
  });

  test('skips a message that changed since the plan, and the rest of its key', async () => {
    await storeRecords(system.db, topic, [
      { key: 'a', value: '1' },
      { key: 'b', value: '2' },
      { key: 'a', value: '3' },
      { key: null, value: '4' },
    ]);
    const { id } = await planRedrive(system.api);
    await system.api.post(`/api/v1/dlq/messages/${await idAt(0)}/retry`);
    await system.db.query(sql`UPDATE dlq.dlq_messages SET status = 'PENDING' WHERE status = 'RESOLVED'`);
    sent = [];
    await runToEnd(system.api, id);
    assert.deepEqual(
      (await itemsOf(system.api, id)).map(({ outcome, reason }) => [outcome, reason]),
      [
        ['skipped', 'changed since the plan'],
        ['published', null],
        ['skipped', 'behind an item with the same key that was not published'],
        ['published', null],
      ],
    );
    assert.deepEqual(
      sent.map(({ value }) => value?.toString()),
      ['2', '4'],
    );
  });

  for (const order of ['key', 'none'] as const)
    test(`with order ${order}, ${order === 'key' ? 'skips' : 'sends'} the rest of a key behind a refused message`, async () => {
      await storeRecords(system.db, topic, [
        { key: 'a', value: 'bad' },
        { key: 'a', value: 'good' },
        { key: 'b', value: 'good' },
      ]);
      const { id } = await planRedrive(system.api, { order });
      // As a broker answers: what has the key of a refused record was not sent.
      publish = async (records, options) => {
        const bad = records.findIndex(({ value }) => value?.toString() === 'bad');
        const results = await local.publish(records, options);
        return results.map((result, i) => {
          if (i === bad) return refused;
          return bad >= 0 && records[i]?.key?.toString() === 'a'
            ? { result: 'skipped', behind: bad }
            : result;
        });
      };
      await runToEnd(system.api, id);
      assert.deepEqual(
        (await itemsOf(system.api, id)).map(({ outcome }) => outcome),
        ['failed', order === 'key' ? 'skipped' : 'published', 'published'],
      );
    });

  test('keeps to its rate, and claims nothing after a pause has been answered', async () => {
    await storeRecords(system.db, topic, plain(300));
    const { id } = await planRedrive(system.api, { rate_per_second: 100 });
    const startedMs = performance.now();
    await commandRedrive(system.api, id, 'start');
    await eventually(() => assert.ok(sent.length >= 40));
    assert.match((await showRedrive(system.api, id)).owner ?? '', /./);
    const elapsed = (performance.now() - startedMs) / 1000;
    const paused = await commandRedrive(system.api, id, 'pause');
    assert.equal(paused.state, 'paused');
    assert.equal((await showRedrive(system.api, id)).eta_seconds, null);
    const claimed = await system.db.query(
      sql`SELECT 1 FROM dlq.message_history WHERE event = 'retry_started'`,
    );
    assert.ok(claimed.length <= (elapsed + 1) * 100 + 10, `${claimed.length} messages in ${elapsed} s`);
    assert.ok(claimed.length < 300);
    await eventually(async () => assert.equal((await showRedrive(system.api, id)).counts['in_flight'], 0));

    await commandRedrive(system.api, id, 'resume');
    const { receipt } = await endedRedrive(system.api, id);
    assert.equal(receipt?.counts['published'], 300);
    assert.equal(sent.length, 300);
    assert.ok(performance.now() - startedMs >= 2500);
  });

  test('a pause is answered after the claim that is running, and what that claimed is in flight', async () => {
    await storeRecords(system.db, topic, plain(10));
    const { id } = await planRedrive(system.api);
    const waiters = async (count: number): Promise<void> =>
      eventually(async () => {
        const rows = await system.db.query(sql`
          SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`);
        assert.equal(rows.length, count);
      });
    let pausing: Promise<string> = Promise.resolve('');
    await system.db.transaction(async (tx) => {
      await tx.query(
        sql`SELECT 1 FROM dlq.redrive_items WHERE redrive_id = ${id} AND position = 1 FOR UPDATE`,
      );
      await commandRedrive(system.api, id, 'start');
      await waiters(1);
      pausing = commandRedrive(system.api, id, 'pause').then(() => 'answered');
      assert.equal(await Promise.race([pausing, waiters(2).then(() => 'waiting')]), 'waiting');
    });
    assert.equal(await pausing, 'answered');
    await eventually(async () => assert.equal((await showRedrive(system.api, id)).counts['published'], 10));
    assert.equal((await showRedrive(system.api, id)).state, 'paused');
  });

  test('a cancelled redrive accounts for what it did not send', async () => {
    await storeRecords(system.db, topic, plain(200));
    const { id } = await planRedrive(system.api, { rate_per_second: 50 });
    await commandRedrive(system.api, id, 'start');
    await eventually(() => assert.ok(sent.length > 0));
    await commandRedrive(system.api, id, 'cancel');
    const { receipt } = await endedRedrive(system.api, id, 'cancelled');
    assert.equal(receipt?.counts['published'], sent.length);
    assert.equal(receipt?.counts['cancelled'], 200 - sent.length);
  });

  test('waits while the broker is unavailable, and uses no attempt', async () => {
    await storeRecords(system.db, topic, plain(50));
    publish = async (records) => records.map(() => down);
    const { id } = await planRedrive(system.api);
    await commandRedrive(system.api, id, 'start');
    await eventually(() => assert.ok(sent.length >= 50));
    await eventually(async () => assert.equal((await showRedrive(system.api, id)).counts['waiting'], 50));
    publish = null;
    sent = [];
    const { receipt } = await endedRedrive(system.api, id);
    assert.equal(receipt?.counts['published'], 50);
    assert.equal(sent.length, 50);
    const [spent] = await system.db.query(sql`SELECT max(retry_count) AS most FROM dlq.dlq_messages`);
    assert.deepEqual(spent, { most: 1 });
  });

  test('of two redrives and a retry-all over the same messages, each message is published by one', async () => {
    await storeRecords(system.db, topic, plain(1500));
    const first = await planRedrive(system.api, { filter: { topic } });
    const second = await planRedrive(system.api, { filter: { status: ['PENDING'] } });
    await Promise.all([
      commandRedrive(system.api, first.id, 'start'),
      commandRedrive(system.api, second.id, 'start'),
      system.api.post(`/api/v1/dlq/${topic}/retry-all`),
    ]);
    await endedRedrive(system.api, first.id);
    await endedRedrive(system.api, second.id);
    const ids = sent.map(({ headers }) =>
      headers.find(({ key }) => key.toString() === 'redrive-message-id')?.value?.toString(),
    );
    assert.equal(new Set(ids).size, ids.length);
    const [most] = await system.db.query(sql`SELECT max(attempt_no) AS attempts FROM dlq.dlq_messages`);
    assert.deepEqual(most, { attempts: 1 });
  });

  test('keeps its messages from a retry-all until it has ended, whatever its state', async () => {
    await storeRecords(system.db, topic, plain(5));
    const { id } = await planRedrive(system.api, { filter: { topic }, rate_per_second: 0.1 });
    await storeRecords(system.db, topic, plain(2));
    const retryAll = async () => {
      const path = `/api/v1/dlq/${topic}/retry-all`;
      const { body } = await system.api.post<Readonly<{ retried: number; exclusions: unknown }>>(path);
      return [body.retried, body.exclusions];
    };
    await commandRedrive(system.api, id, 'start');
    const exclusions = [{ reason: 'in_another_redrive', topic, count: 5 }];
    assert.deepEqual(await retryAll(), [2, exclusions]);
    await commandRedrive(system.api, id, 'pause');
    assert.deepEqual(await retryAll(), [0, exclusions]);
    await system.db.query(sql`UPDATE dlq.redrives SET state = 'stopped' WHERE id = ${id}`);
    assert.deepEqual(await retryAll(), [0, exclusions]);
    await commandRedrive(system.api, id, 'cancel');
    assert.deepEqual(await retryAll(), [5, []]);
  });

  test('waits for a message that another transaction has locked, and sends its key in order', async () => {
    await storeRecords(system.db, topic, [
      { key: 'a', value: '1' },
      { key: 'a', value: '2' },
      { key: 'b', value: '3' },
    ]);
    const { id } = await planRedrive(system.api);
    const lockedId = await idAt(0);
    await system.db.transaction(async (tx) => {
      await tx.query(sql`SELECT 1 FROM dlq.dlq_messages WHERE id = ${lockedId} FOR UPDATE`);
      await commandRedrive(system.api, id, 'start');
      await eventually(() =>
        assert.deepEqual(
          sent.map(({ value }) => value?.toString()),
          ['3'],
        ),
      );
    });
    await endedRedrive(system.api, id);
    assert.deepEqual(
      sent.map(({ value }) => value?.toString()),
      ['3', '1', '2'],
    );
  });

  test('refuses what is not built, a wrong state and an unknown id', async () => {
    const body = { filter: { topic }, reason: 'test' };
    assertError(await system.api.post(root, { ...body, kind: 'publish' }), 400);
    const { id } = await planRedrive(system.api);
    const wrong = assertError(await system.api.post(`${root}/${id}/pause`, {}), 409, 'SYS_DLQ_CONFLICT');
    assert.match(wrong.message, /redrive is planned: pause needs running/);
    const unknown = '00000000-0000-4000-8000-000000000000';
    assertError(await system.api.get(`${root}/${unknown}`), 404, 'SYS_DLQ_NOT_FOUND');
    assertError(await system.api.get(`${root}/${unknown}/items`), 404, 'SYS_DLQ_NOT_FOUND');
    assertError(await system.api.post(`${root}/${unknown}/start`, {}), 404, 'SYS_DLQ_NOT_FOUND');
  });

  test('an empty plan finishes at once', async () => {
    const { id } = await planRedrive(system.api, { filter: { topic: 'nothing.v1' } });
    const { receipt } = await runToEnd(system.api, id);
    assert.equal(receipt?.counts['selected'], 0);
  });

  test('is listed by its state', async () => {
    const finished = await planRedrive(system.api, { filter: { topic: 'nothing.v1' } });
    await runToEnd(system.api, finished.id);
    const planned = await planRedrive(system.api);
    const listed = async (query: string): Promise<readonly string[]> => {
      const { body } = await system.api.get<{ redrives: { id: string }[] }>(`${root}?${query}`);
      return body.redrives.map(({ id }) => id);
    };
    assert.deepEqual(await listed('state=planned'), [planned.id]);
    assert.deepEqual(await listed('state=running&state=finished'), [finished.id]);
    assertError(await system.api.get(`${root}?state=done`), 400);
  });

  test('is not started from a plan that is older than a day, even before that has expired', async () => {
    await storeRecords(system.db, topic, plain(2));
    const { id } = await planRedrive(system.api);
    await system.db.query(sql`
      UPDATE dlq.redrives SET planned_at = planned_at - interval '24 hours 1 second' WHERE id = ${id}`);
    const refused = assertError(await system.api.post(`${root}/${id}/start`, {}), 409, 'SYS_DLQ_CONFLICT');
    assert.match(refused.message, /redrive is expired/);
    await commandRedrive(system.api, id, 'cancel');
  });

  test('a plan that is cancelled before its start ends with a receipt', async () => {
    await storeRecords(system.db, topic, plain(10));
    const { id } = await planRedrive(system.api);
    await commandRedrive(system.api, id, 'cancel');
    const { receipt } = await endedRedrive(system.api, id, 'cancelled');
    assert.equal(receipt?.counts['cancelled'], 10);
    await redriveInState(system.api, id, 'cancelled');
  });
});
