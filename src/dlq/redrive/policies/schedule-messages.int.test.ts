import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { testAct } from '../../../../tests/support/acts.ts';
import { createTestDatabase, type TestDatabase } from '../../../../tests/support/database.ts';
import {
  clearPolicies,
  minuteMs,
  retryPolicy,
  schedule,
  storePolicies,
} from '../../../../tests/support/retry-policies.ts';
import { storeMessage } from '../../../../tests/support/stored-message.ts';
import { createTestWorker } from '../../../../tests/support/worker.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { retryDelayMs } from '../../domain/retry-policy.ts';
import { claimMessages } from '../claim-messages.ts';
import { settleAttempts, type AttemptOutcome } from '../settle-messages.ts';
import { commandPolicy } from './command-policy.ts';
import { getPolicy, listPolicies } from './read-policies.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
afterEach(() => clearPolicies(database.db));

type Scheduled = Readonly<{ policy: string | null; inMs: number | null; updatedMs: number; epoch: bigint }>;

/** `inMs` counts from the last change of the message. */
async function scheduleOf(id: string): Promise<Scheduled> {
  const [row] = await database.db.query<Scheduled>(sql`
    SELECT retry_policy AS policy, round(extract(epoch FROM next_attempt_at - updated_at) * 1000)::float8 AS "inMs",
           (extract(epoch FROM updated_at) * 1000)::float8 AS "updatedMs", lease_epoch AS epoch
    FROM dlq.dlq_messages WHERE id = ${id}`);
  return row ?? assert.fail('no message');
}

describe('scheduling', () => {
  test('a message is due a delay after its last change, longer after every attempt', async () => {
    const ids = await Promise.all(
      [0, 1, 2].map((retryCount) =>
        storeMessage(database.db, { topic: 'orders.v1', retryCount, maxRetries: 5 }),
      ),
    );
    const before = await scheduleOf(ids[0] ?? '');
    assert.equal(await schedule(database.db, retryPolicy()), 3);
    for (const [retryCount, id] of ids.entries()) {
      const { inMs, policy: name } = await scheduleOf(id);
      assert.equal(name, 'orders');
      assert.equal(inMs, retryDelayMs(retryPolicy(), retryCount));
    }
    const { updatedMs, epoch } = await scheduleOf(ids[0] ?? '');
    assert.deepEqual([updatedMs, epoch], [before.updatedMs, before.epoch]);
    assert.equal(await schedule(database.db, retryPolicy()), 0);
  });

  test('a message of which content was removed at ingest waits for a person', async () => {
    const id = await storeMessage(database.db, { topic: 'orders.v1' });
    await database.db.query(sql`UPDATE dlq.dlq_messages SET removed_parts = '{value}' WHERE id = ${id}`);
    assert.equal(await schedule(database.db, retryPolicy()), 0);
    await database.db.query(sql`UPDATE dlq.dlq_messages SET removed_parts = '{error}' WHERE id = ${id}`);
    assert.equal(await schedule(database.db, retryPolicy()), 1);
  });

  test('the delay of SQL is that of the domain, also for extreme numbers', async () => {
    for (const [retryCount, backoff, delayMs] of [
      [0, 10, 1000],
      [7, 1.5, 1000],
      [999, 10, 2_592_000_000],
      [-1, 2, 5000],
    ] as const) {
      const id = await storeMessage(database.db, { topic: 'orders.v1', retryCount, maxRetries: 1000 });
      const rule = retryPolicy({ backoff, delayMs, maxAttempts: 1000 });
      await schedule(database.db, rule);
      const { inMs } = await scheduleOf(id);
      assert.ok(Math.abs((inMs ?? 0) - retryDelayMs(rule, retryCount)) <= 1, `${inMs}`);
      await database.db.query(sql`DELETE FROM dlq.dlq_messages`);
    }
  });

  test('the first policy that matches a message takes it, by topic, error class and fingerprint', async () => {
    const ids: string[] = [];
    for (const [errorClass, fingerprint] of [
      ['Timeout', 'v2:a'],
      ['Timeout', 'v2:b'],
      ['Broken', 'v2:b'],
      [null, null],
    ] as const) {
      const id = await storeMessage(database.db, { topic: 'orders.v1' });
      await database.db.query(sql`
        UPDATE dlq.dlq_messages SET error_class = ${errorClass}, fingerprint = ${fingerprint} WHERE id = ${id}`);
      ids.push(id);
    }
    const other = await storeMessage(database.db, { topic: 'payments.v1' });
    await schedule(
      database.db,
      retryPolicy({ name: 'one', errorClasses: ['Timeout'], fingerprints: ['v2:a'] }),
      retryPolicy({ name: 'class', errorClasses: ['Timeout', 'Else'] }),
      retryPolicy({ name: 'print', fingerprints: ['v2:b'] }),
      retryPolicy({ name: 'rest' }),
    );
    const taken = await Promise.all([...ids, other].map(async (id) => (await scheduleOf(id)).policy));
    assert.deepEqual(taken, ['one', 'class', 'print', 'rest', null]);
  });

  test('what has no attempt left for the first matching policy is left alone, also by the next one', async () => {
    const id = await storeMessage(database.db, { topic: 'orders.v1', retryCount: 2, maxRetries: 5 });
    const spent = await storeMessage(database.db, { topic: 'orders.v1', retryCount: 3, maxRetries: 3 });
    assert.equal(
      await schedule(
        database.db,
        retryPolicy({ maxAttempts: 2 }),
        retryPolicy({ name: 'next', maxAttempts: 5 }),
      ),
      0,
    );
    assert.equal(await schedule(database.db, retryPolicy({ maxAttempts: 3 })), 1);
    assert.deepEqual([(await scheduleOf(id)).policy, (await scheduleOf(spent)).policy], ['orders', null]);
  });

  test('messages without a place to go, and those that are not PENDING, are not scheduled', async () => {
    await storeMessage(database.db, { topic: 'orders.v1', status: 'DEAD' });
    await storeMessage(database.db, { topic: 'orders.v1', status: 'RESOLVED' });
    await storeMessage(database.db, { topic: 'orders.dlq' });
    const lost = await storeMessage(database.db, { topic: 'orders.v2' });
    await database.db.query(sql`UPDATE dlq.dlq_messages SET unroutable = true WHERE id = ${lost}`);
    assert.equal(await schedule(database.db, retryPolicy()), 0);
  });

  test('a message that another transaction has locked is scheduled the next time', async () => {
    const id = await storeMessage(database.db, { topic: 'orders.v1' });
    await database.db.transaction(async (tx) => {
      await tx.query(sql`SELECT 1 FROM dlq.dlq_messages WHERE id = ${id} FOR UPDATE`);
      assert.equal(await schedule(database.db, retryPolicy()), 0);
    });
    assert.equal(await schedule(database.db, retryPolicy()), 1);
  });

  test('every page of a topic is looked at', async () => {
    await database.db.query(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, created_at)
      SELECT 'orders.v1', 'failed', clock_timestamp() - (i / 3) * interval '1 ms' FROM generate_series(1, 20001) AS i`);
    assert.equal(await schedule(database.db, retryPolicy()), 20_001);
    assert.equal(await schedule(database.db, retryPolicy()), 0);
  });

  test('an attempt starts the delay again, however it ends', async () => {
    const worker = createTestWorker(database.db);
    const outcomes: readonly AttemptOutcome[] = [
      { end: 'failed', error: 'refused' },
      { end: 'released', reason: 'no connection' },
    ];
    for (const outcome of outcomes) {
      const id = await storeMessage(database.db, { topic: 'orders.v1' });
      await schedule(database.db, retryPolicy());
      const batch = await claimMessages({ worker, leaseMs: 30_000 }, sql`t.id = ${id}`, {
        actor: 'alice',
        limit: 1,
        reroute: { unroutable: null, misnamed: null },
      });
      assert.equal(batch.messages.length, 1);
      assert.deepEqual((await scheduleOf(id)).policy, null);
      await settleAttempts(
        { worker, onSettleRetry: () => {} },
        { lease: batch.lease, outcomes: new Map([[id, outcome]]), actor: 'alice' },
      );
      await schedule(database.db, retryPolicy());
      const { inMs } = await scheduleOf(id);
      assert.equal(inMs, retryDelayMs(retryPolicy(), outcome.end === 'failed' ? 1 : 0));
      await database.db.query(sql`DELETE FROM dlq.dlq_messages`);
    }
  });
});

describe('policies of the configuration', () => {
  test('a change of what they retry schedules everything again, and no other change does', async () => {
    const id = await storeMessage(database.db, { topic: 'orders.v1' });
    await schedule(database.db, retryPolicy());
    assert.equal(await storePolicies(database.db, retryPolicy({ ratePerSecond: 77 })), false);
    assert.equal((await scheduleOf(id)).policy, 'orders');
    assert.equal((await getPolicy(database.db, 'orders')).definition.rate_per_second, 77);

    assert.equal(await storePolicies(database.db, retryPolicy({ delayMs: minuteMs })), true);
    assert.equal((await scheduleOf(id)).inMs, null);
    await schedule(database.db, retryPolicy({ name: 'first' }), retryPolicy({ delayMs: minuteMs }));
    assert.equal((await scheduleOf(id)).policy, 'first');
  });

  test('a removed policy schedules nothing, and keeps its state until it is back', async () => {
    const id = await storeMessage(database.db, { topic: 'orders.v1' });
    await schedule(database.db, retryPolicy());
    await commandPolicy(database.db, {
      name: 'orders',
      command: 'pause',
      actor: 'alice',
      reason: 'why not',
      act: testAct('dlq:redrives:pause'),
    });
    await schedule(database.db, retryPolicy({ name: 'renamed', topics: ['nothing'] }));
    assert.equal((await scheduleOf(id)).policy, null);
    const listed = await listPolicies(database.db);
    assert.deepEqual(
      listed.map(({ name, isConfigured, state }) => [name, isConfigured, state]),
      [
        ['renamed', true, 'active'],
        ['orders', false, 'paused'],
      ],
    );
    await storePolicies(database.db, retryPolicy());
    assert.equal((await getPolicy(database.db, 'orders')).state, 'paused');
  });
});
