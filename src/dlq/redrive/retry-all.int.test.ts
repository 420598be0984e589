import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { testAct } from '../../../tests/support/acts.ts';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { storeMessage, storeRecords, type StoredRecord } from '../../../tests/support/stored-message.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { createSoloGate } from '../../platform/work/solo-gate.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { retryAll, type RetryAllDeps } from './retry-all.ts';
import { retryMessage } from './retry-message.ts';
import type { PublishResult } from '../../platform/broker/port.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { clearPayloads } from '../domain/payloads.ts';
import { findHead } from '../browse/find-message.ts';
import type { Publish } from './publish-claimed.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
afterEach(() => database.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.message_history`));

const leaseMs = 30_000;
const large = 5 << 20;

/** A call on real rows, with a clock that only a publish advances. */
function createCall(publishMs: () => number): RetryAllDeps & { sent: string[] } {
  let nowMs = 0;
  const clock = { now: () => new Date(), monotonicMs: () => nowMs };
  const sent: string[] = [];
  const publish: Publish = async (records) => {
    nowMs += publishMs();
    for (const { key, value } of records) sent.push(`${String(key)}${value?.toString('latin1', 0, 2)}`);
    return records.map((_, i) => ({ result: 'acked', partition: 0, offset: BigInt(i) }));
  };
  const worker = { ...createTestWorker(database.db), clock };
  return {
    sent,
    worker,
    payloads: clearPayloads,
    leaseMs,
    findHead: (id) => findHead(database.db, id),
    publish,
    unwritable: async () => new Map(),
    gate: createSoloGate(),
    publishTimeoutMs: 5000,
    republishKey: 'original',
    republishCompression: 'source',
    stripFailureHeaders: (headers) => headers,
    isDeadLetterTopic: () => false,
    isAllowedTarget: () => true,
    routesOf: () => ({ unroutable: null, misnamed: null }),
    onAttempt: () => {},
    onRetriedAll: () => {},
    onSettleRetry: () => {},
    stopping: new AbortController().signal,
    batchSize: 3,
  };
}

const records: readonly StoredRecord[] = Array.from({ length: 6 }, (_, i) => ({
  key: i % 2 === 0 ? 'a' : 'b',
  value: Buffer.alloc(large, `${i} `),
}));

test('messages whose lease is too short are retried in the same call, and each key keeps its order', async () => {
  await storeRecords(database.db, 'slow.v1', records);
  const call = createCall(() => 14_000);
  const { retried, skipped, remaining } = await retryAll(call, 'slow.v1', 'tester');
  assert.deepEqual([retried, skipped, remaining], [6, 0, 0]);
  for (const key of ['a', 'b']) {
    const ofKey = call.sent.filter((text) => text.startsWith(key));
    assert.deepEqual(ofKey, ofKey.toSorted());
  }
  const [spent] = await database.db.query(sql`
    SELECT max(retry_count) AS most, max(attempt_no) > 1 AS "wasGivenBack" FROM dlq.dlq_messages`);
  assert.deepEqual(spent, { most: 1, wasGivenBack: true });
});

test('messages that are never sent keep their budget, and block their keys', async () => {
  await storeRecords(database.db, 'slow.v1', records);
  const call = createCall(() => 0);
  const { retried, failed, skipped } = await retryAll(
    { ...call, publishTimeoutMs: leaseMs + 1 },
    'slow.v1',
    'tester',
  );
  assert.deepEqual([retried, failed, skipped, call.sent], [0, 0, 6, []]);
  const rows = await database.db.query(sql`
    SELECT DISTINCT status, retry_count FROM dlq.dlq_messages`);
  assert.deepEqual(rows, [{ status: 'PENDING', retry_count: 0 }]);
});

const failed = (fault: 'cluster' | 'record', retriable: boolean): PublishResult => ({
  result: 'failed',
  fault,
  retriable,
  code: 'NO_LUCK',
  message: 'no luck',
});

const small = (count: number): readonly StoredRecord[] =>
  Array.from({ length: count }, (_, i) => ({ key: `key-${i}`, value: `${i}` }));

test('after an outage nothing more is claimed, not even in the other stream', async () => {
  await storeRecords(database.db, 'both.v1.dlq', small(2));
  await storeRecords(database.db, 'both.v1', small(2));
  const call = createCall(() => 0);
  const publish: Publish = async (all) => all.map(() => failed('cluster', true));
  await assert.rejects(retryAll({ ...call, publish }, 'both.v1.dlq', 'tester'), /4 remaining, 0 failed/);
  const rows = await database.db.query(sql`
    SELECT original_topic AS topic, max(attempt_no) AS attempts FROM dlq.dlq_messages GROUP BY 1 ORDER BY 1`);
  assert.deepEqual(rows, [
    { topic: 'both.v1', attempts: 0 },
    { topic: 'both.v1.dlq', attempts: 1 },
  ]);
});

test('a refused record does not end the call, even if the refusal is retriable', async () => {
  await storeRecords(database.db, 'odd.v1', small(5));
  const call = createCall(() => 0);
  const publish: Publish = async (all) =>
    all.map(({ value }) =>
      value?.toString() === '1' ? failed('record', true) : { result: 'acked', partition: 0, offset: 0n },
    );
  const answer = await retryAll({ ...call, publish }, 'odd.v1', 'tester');
  assert.deepEqual([answer.retried, answer.failed, answer.remaining, answer.ended], [4, 1, 0, null]);
});

test('messages left waiting when their stream ends block their keys in the other stream', async () => {
  await storeRecords(database.db, 'late.v1.dlq', [{ key: 'a', value: Buffer.alloc(large) }]);
  await storeRecords(database.db, 'late.v1', [{ key: 'a', value: 'behind' }]);
  await database.db.query(sql`
    UPDATE dlq.dlq_messages SET lease_lost = true, retry_count = max_retries - 1
    WHERE original_topic = 'late.v1.dlq'`);
  const call = createCall(() => 0);
  const answer = await retryAll(
    {
      ...call,
      worker: { ...call.worker, db: failingToLoadBodies(call.worker.db) },
      isDeadLetterTopic: (topic) => topic.endsWith('.dlq'),
      routesOf: () => ({ unroutable: null, misnamed: 'late.v1' }),
    },
    'late.v1.dlq',
    'tester',
  );
  assert.deepEqual([answer.retried, answer.skipped, answer.remaining, call.sent], [0, 2, 0, []]);
});

/** Fails the statement that loads the bodies of claimed messages. */
function failingToLoadBodies(db: Queryable): Queryable {
  return {
    query: (statement) =>
      statement.text.includes('JOIN dlq.dlq_messages t ON t.id = keys.key\n    WHERE t.lease_epoch')
        ? Promise.reject(new Error('no answer'))
        : db.query(statement),
  };
}

test('a call with too many refused keys ends, and says why', async () => {
  await storeRecords(database.db, 'hopeless.v1', small(12_600));
  const call = createCall(() => 0);
  const publish: Publish = async (all) => all.map(() => failed('record', false));
  const answer = await retryAll({ ...call, publish, batchSize: 2500 }, 'hopeless.v1', 'tester');
  assert.deepEqual([answer.failed, answer.skipped, answer.remaining], [10_000, 0, 2600]);
  assert.equal(answer.ended, 'messages with 10000 different keys were refused');
});

test('messages with an infinite timestamp are sent first or last', async () => {
  await storeRecords(database.db, 'endless.v1', small(8));
  for (const [value, at] of [
    ['2', 'infinity'],
    ['5', '-infinity'],
  ])
    await database.db.query(sql`
      UPDATE dlq.dlq_messages SET created_at = ${at}::timestamptz WHERE raw_value = convert_to(${value}, 'UTF8')`);
  const call = createCall(() => 0);
  const { retried } = await retryAll(call, 'endless.v1', 'tester');
  const order = call.sent.map((text) => text.at(-1)).join('');
  assert.deepEqual([retried, order], [8, '50134672']);
});

test('a payload that is too large to be shown is published', async () => {
  const id = await storeMessage(database.db, { topic: 'huge.v1' });
  await database.db.query(sql`
    UPDATE dlq.dlq_messages SET payload = to_jsonb(repeat('x', ${17 << 20})) WHERE id = ${id}`);
  const call = createCall(() => 0);
  const answer = await retryMessage(call, id, { actor: 'tester', act: testAct('dlq:messages:retry') });
  assert.deepEqual([answer.published, call.sent], [true, ['null"x']]);
});

test('a narrowed role publishes only to topics in its scope, also where a rule chooses the topic', async () => {
  const names = [[['in.*']]];
  const id = await storeMessage(database.db, { topic: 'in.dlq' });
  await database.db.query(sql`UPDATE dlq.dlq_messages SET unroutable = true, source_topic = 'in.dlq'`);
  const to = (target: string) => ({
    ...createCall(() => 0),
    routesOf: () => ({ unroutable: target, misnamed: target }),
  });
  const act = testAct('dlq:messages:retry');
  const outside = to('out.v1');
  await assert.rejects(retryMessage(outside, id, { actor: 'tester', act, names }), /goes to out\.v1/);
  const { retried, exclusions } = await retryAll(outside, 'in.dlq', 'tester', names);
  assert.equal(retried, 0);
  assert.deepEqual(exclusions, [{ reason: 'target_not_in_scope', topic: 'in.dlq', count: 1 }]);
  assert.deepEqual(outside.sent, []);
  const inside = to('in.v1');
  assert.equal((await retryMessage(inside, id, { actor: 'tester', act, names })).published, true);
});
