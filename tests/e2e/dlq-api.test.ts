import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, sortedStatuses } from '../support/api-client.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import {
  archiveEverything,
  storeMessage,
  type ListView,
  type MessageView,
} from '../support/stored-message.ts';

/** The eight endpoints that clients of the system before ours know: fields, order, texts and codes. */

const knownFields = [
  'id',
  'original_topic',
  'error_message',
  'retry_count',
  'max_retries',
  'payload',
  'status',
  'created_at',
  'updated_at',
  'last_retry_at',
];
const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/;
const root = '/api/v1/dlq';

let system: TestSystem;
before(async () => {
  system = await startTestSystem();
});
after(() => system.drop());
afterEach(() =>
  system.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.dlq_messages_archive, dlq.message_history`),
);

describe('health', () => {
  test('healthz says ok and nothing else', async () => {
    const answer = await system.api.get('/healthz');
    assert.equal(answer.status, 200);
    assert.equal(answer.text, '{"status":"ok"}');
  });

  test('readyz lists its checks and is healthy with a database', async () => {
    const answer = await system.api.get<{ status: string; checks: object; timestamp: string }>('/readyz');
    assert.equal(answer.status, 200);
    assert.deepEqual(Object.keys(answer.body), ['status', 'checks', 'timestamp']);
    assert.equal(answer.body.status, 'healthy');
    assert.deepEqual(answer.body.checks, {
      database: { status: 'healthy' },
      database_login: { status: 'healthy' },
      schema: { status: 'healthy' },
      rights: { status: 'healthy' },
      dlq_index: { status: 'healthy' },
      dlq_encryption: { status: 'healthy' },
      outbox: { status: 'healthy' },
      workflows: { status: 'healthy' },
      notify: { status: 'healthy' },
      audit_seal: { status: 'healthy' },
    });
    assert.match(answer.body.timestamp, timestamp);
  });

  test('metrics are in the Prometheus text format and count requests by route', async () => {
    await system.api.get(`${root}/some.topic.v1`);
    const answer = await system.api.get('/metrics');
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    assert.match(answer.text, /^http_requests_total\{.*route="\/api\/v1\/dlq\/:topic".*\} \d+$/m);
    assert.match(answer.text, /^# TYPE dlq_retries_total counter$/m);
    assert.doesNotMatch(answer.text, /some\.topic\.v1/);
  });
});

describe('the list of a topic', () => {
  test('an empty topic has no messages', async () => {
    const answer = await system.api.get(`${root}/orders.dlq.v1`);
    assert.equal(answer.status, 200);
    assert.equal(
      answer.text,
      '{"messages":[],"pagination":{"total_count":0,"page":1,"page_size":20,"has_next":false}}',
    );
  });

  test('a stored message is shown with the known fields first, in their order', async () => {
    const id = await storeMessage(system.db, { createdAt: '2026-02-20T10:30:00Z' });
    const { status, body } = await system.api.get<ListView>(`${root}/orders.events.v1`);
    assert.equal(status, 200);
    assert.equal(body.messages.length, 1);
    const [message] = body.messages;
    assert.deepEqual(Object.keys(message ?? {}).slice(0, 10), knownFields);
    const known = Object.fromEntries(Object.entries(message ?? {}).slice(0, 10));
    assert.deepEqual(known, {
      id,
      original_topic: 'orders.events.v1',
      error_message: 'processing failed',
      retry_count: 0,
      max_retries: 3,
      payload: { order_id: '123' },
      status: 'PENDING',
      created_at: '2026-02-20T10:30:00.000+00:00',
      updated_at: '2026-02-20T10:30:00.000+00:00',
      last_retry_at: null,
    });
    assert.deepEqual(body.pagination, { total_count: 1, page: 1, page_size: 20, has_next: false });
    assert.deepEqual(Object.keys(body.pagination), ['total_count', 'page', 'page_size', 'has_next']);
  });
});

describe('one message', () => {
  test('an unknown id is 404 in the known words', async () => {
    const id = '550e8400-e29b-41d4-a716-446655440000';
    const error = assertError(await system.api.get(`${root}/messages/${id}`), 404, 'SYS_DLQ_NOT_FOUND');
    assert.equal(error.message, `dlq message not found: ${id}`);
    assert.deepEqual(error.details, []);
  });

  test('a wrong id is 400 in the known words', async () => {
    const answer = await system.api.get(`${root}/messages/not-a-uuid`);
    const error = assertError(answer, 400, 'SYS_DLQ_VALIDATION_ERROR');
    assert.equal(error.message, 'invalid message id: not-a-uuid');
    assert.deepEqual(error.details, []);
  });

  test('it is found by its id, in either case, with the known fields first', async () => {
    const id = await storeMessage(system.db, { payload: { order_id: '123' } });
    for (const spelled of [id, id.toUpperCase()]) {
      const { status, body } = await system.api.get<MessageView>(`${root}/messages/${spelled}`);
      assert.equal(status, 200);
      assert.deepEqual(Object.keys(body).slice(0, 10), knownFields);
      assert.equal(body.id, id);
      assert.match(body.created_at, timestamp);
      assert.match(body.updated_at, timestamp);
    }
  });

  test('numbers in the payload keep every digit', async () => {
    const id = await storeMessage(system.db);
    const digits = '{"big": 123456789012345678901234567890, "exact": 0.10000000000000000000000001}';
    await system.db.query(sql`UPDATE dlq.dlq_messages SET payload = ${digits}::jsonb WHERE id = ${id}`);
    const { text } = await system.api.get(`${root}/messages/${id}`);
    assert.ok(text.includes(`"payload":${digits}`), text);
  });

  test('the request id is kept, or made', async () => {
    const path = `${root}/messages/${randomUUID()}`;
    const kept = await system.api.get(path, { 'x-request-id': 'req_abc123def456' });
    assert.equal(assertError(kept, 404).request_id, 'req_abc123def456');
    assert.match(assertError(await system.api.get(path), 404).request_id, /^\S{8,}$/);
  });
});

describe('a retry', () => {
  test('an unknown message is 404', async () => {
    const id = randomUUID();
    const answer = await system.api.post(`${root}/messages/${id}/retry`);
    assert.equal(assertError(answer, 404, 'SYS_DLQ_NOT_FOUND').message, `dlq message not found: ${id}`);
  });

  test('a wrong id is 400', async () => {
    const answer = await system.api.post(`${root}/messages/not-a-uuid/retry`);
    assert.equal(
      assertError(answer, 400, 'SYS_DLQ_VALIDATION_ERROR').message,
      'invalid message id: not-a-uuid',
    );
  });

  test('a PENDING message is resolved, and without Kafka the answer says that nothing was sent', async () => {
    const id = await storeMessage(system.db);
    const { status, text } = await system.api.post(`${root}/messages/${id}/retry`);
    assert.equal(status, 200);
    assert.equal(
      text,
      `{"id":"${id}","status":"RESOLVED","message":"message retry initiated","published":false}`,
    );
    const { body } = await system.api.get<MessageView>(`${root}/messages/${id}`);
    assert.equal(body.status, 'RESOLVED');
    assert.equal(body.retry_count, 1);
    assert.equal(body.resolution, 'not_published');
    assert.match(body.last_retry_at ?? '', timestamp);
  });

  const refused = [
    { status: 'DEAD', retryCount: 3, text: 'status=DEAD, retry_count=3/3' },
    { status: 'DEAD', retryCount: 1, text: 'status=DEAD, retry_count=1/3' },
    { status: 'RESOLVED', retryCount: 1, text: 'status=RESOLVED, retry_count=1/3' },
    { status: 'PENDING', retryCount: 3, text: 'status=PENDING, retry_count=3/3' },
    // Left behind by the system before ours: its worker is gone, so the attempt has failed.
    { status: 'RETRYING', retryCount: 3, text: 'status=DEAD, retry_count=3/3' },
  ] as const;
  for (const { status, retryCount, text } of refused)
    test(`a message with ${status} ${retryCount}/3 is refused with ${text}`, async () => {
      const id = await storeMessage(system.db, { status, retryCount });
      const answer = await system.api.post(`${root}/messages/${id}/retry`);
      const error = assertError(answer, 409, 'SYS_DLQ_CONFLICT');
      assert.equal(error.message, `message is not retryable: ${text}`);
      assert.deepEqual(error.details, []);
    });

  test('a RETRYING message whose worker is gone may be retried', async () => {
    const id = await storeMessage(system.db, { status: 'RETRYING', retryCount: 1 });
    assert.equal((await system.api.post(`${root}/messages/${id}/retry`)).status, 200);
    const { body } = await system.api.get<MessageView>(`${root}/messages/${id}`);
    assert.equal(body.retry_count, 2);
  });

  test('of ten simultaneous retries one wins and nine are told that it is not retryable', async () => {
    const id = await storeMessage(system.db);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => system.api.post(`${root}/messages/${id}/retry`)),
    );
    assert.deepEqual(sortedStatuses(answers), [200, ...Array.from({ length: 9 }, () => 409)]);
    for (const answer of answers)
      if (answer.status === 409)
        assert.match(
          assertError(answer, 409, 'SYS_DLQ_CONFLICT').message,
          /^message is (not retryable: status=(RETRYING|RESOLVED), retry_count=1\/3|locked by another transaction: .*; try again)$/,
        );
  });

  test('a message that somebody has locked is refused with the state that it is in', async () => {
    const id = await storeMessage(system.db);
    await system.db.transaction(async (tx) => {
      await tx.query(sql`SELECT 1 FROM dlq.dlq_messages WHERE id = ${id} FOR UPDATE`);
      const answer = await system.api.post(`${root}/messages/${id}/retry`);
      assert.equal(
        assertError(answer, 409, 'SYS_DLQ_CONFLICT').message,
        'message is locked by another transaction: status=PENDING, retry_count=0/3; try again',
      );
    });
  });
});

describe('a deletion', () => {
  test('it answers in the known words, and the message is gone', async () => {
    const id = await storeMessage(system.db);
    const { status, text } = await system.api.delete(`${root}/messages/${id}`);
    assert.equal(status, 200);
    assert.equal(text, `{"success":true,"message":"message ${id} deleted"}`);
    assertError(await system.api.get(`${root}/messages/${id}`), 404, 'SYS_DLQ_NOT_FOUND');
    assertError(await system.api.delete(`${root}/messages/${id}`), 404, 'SYS_DLQ_NOT_FOUND');
  });

  test('a wrong id is 400', async () => {
    assertError(await system.api.delete(`${root}/messages/nope`), 400, 'SYS_DLQ_VALIDATION_ERROR');
  });
});

describe('retry-all', () => {
  test('it retries what is retryable of its topic and answers in the known words', async () => {
    const topic = 'orders.events.v1';
    for (let i = 0; i < 15; i += 1) await storeMessage(system.db, { topic });
    await storeMessage(system.db, { topic, status: 'DEAD', retryCount: 3 });
    await storeMessage(system.db, { topic, status: 'RESOLVED', retryCount: 1 });
    await storeMessage(system.db, { topic, retryCount: 3 });
    const other = await storeMessage(system.db, { topic: 'payments.events.v1' });

    const { status, text } = await system.api.post(`${root}/${topic}/retry-all`);
    assert.equal(status, 200);
    const nothingLeft = '"failed":0,"skipped":0,"excluded":0,"remaining":0,"exclusions":[]';
    assert.equal(text, `{"retried":15,"message":"15 messages retried in topic ${topic}",${nothingLeft}}`);
    const { body } = await system.api.get<ListView>(`${root}/messages?topic=${topic}&status=RESOLVED`);
    assert.equal(body.pagination.total_count, 16);
    assert.equal((await system.api.get<MessageView>(`${root}/messages/${other}`)).body.status, 'PENDING');
  });

  test('a topic that nobody has heard of is 404, one whose messages are archived has nothing to retry', async () => {
    assertError(await system.api.post(`${root}/orders.dlq.v1/retry-all`), 404, 'SYS_DLQ_NOT_FOUND');
    await storeMessage(system.db, { topic: 'archived.v1', status: 'RESOLVED' });
    await archiveEverything(system.db);
    const { status, body } = await system.api.post<{ retried: number }>(`${root}/archived.v1/retry-all`);
    assert.deepEqual([status, body.retried], [200, 0]);
  });

  test('two at once retry every message exactly once', async () => {
    for (let i = 0; i < 120; i += 1) await storeMessage(system.db);
    const answers = await Promise.all([
      system.api.post<{ retried: number }>(`${root}/orders.events.v1/retry-all`),
      system.api.post<{ retried: number }>(`${root}/orders.events.v1/retry-all`),
    ]);
    assert.equal(answers[0].body.retried + answers[1].body.retried, 120);
    const { body } = await system.api.get<ListView>(`${root}/messages?status=RESOLVED&page_size=100`);
    assert.ok(body.messages.every((message) => message.retry_count === 1));
  });
});
