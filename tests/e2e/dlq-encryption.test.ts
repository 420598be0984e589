import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Broker } from '../../src/platform/broker/port.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { createMasterKeyFile, newMasterKey, tablesWith, type MasterKeyFile } from '../support/encryption.ts';
import { eventually } from '../support/eventually.ts';
import { diffOf, edit, rawOf, versionsOf } from '../support/edits.ts';
import { deadLetterTo } from '../support/local-dead-letters.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

/** Messages of protected topics are encrypted in the database, and everywhere else as if they were not. */

const root = '/api/v1/dlq/messages';
const canary = 'Canary4711WithItsOwnWord';

type Listed = Readonly<{
  id: string;
  key: string | null;
  payload?: unknown;
  payload_preview?: string | null;
  payload_bytes?: number;
  error_stack?: string | null;
  encrypted?: boolean;
  unreadable?: string;
}>;

let system: TestSystem;
let broker: Broker;
let keys: MasterKeyFile;
let store: Awaited<ReturnType<typeof deadLetterTo>>;
before(async () => {
  keys = createMasterKeyFile(newMasterKey('first'));
  system = await startTestSystem({
    kafka: 'local',
    env: { PROTECT_ENCRYPT_TOPICS: 'payments.*', PROTECT_ENCRYPT_KEY_FILE: keys.path },
  });
  broker = system.broker ?? assert.fail('there is a local broker');
  store = await deadLetterTo(system, ['payments', 'orders']);
});
after(() => system.drop());

const deadLetter = (
  topic: string,
  { key, value }: Readonly<{ key: string | null; value: string | null }>,
): Promise<string> =>
  store(topic, {
    key,
    value,
    headers: [
      ['x-exception-stacktrace', `Error: ${canary}\n  at run (run.js:1:2)`],
      ['x-customer', canary],
    ],
  });

describe('a message of an encrypted topic', () => {
  const value = `{"customer":"${canary}","amount":12345678901234567890.10}`;
  let id: string;
  before(async () => void (id = await deadLetter('payments', { key: `key-${canary}`, value })));

  test('is nowhere in the database in the clear', async () => {
    await eventually(async () =>
      assert.deepEqual(await system.db.query(sql`SELECT 1 FROM dlq.index_queue`), []),
    );
    assert.deepEqual(await tablesWith(system.db, [canary]), []);
    // The search finds what is not encrypted.
    await deadLetter('orders', { key: `key-${canary}`, value });
    await eventually(async () => {
      const found = await tablesWith(system.db, [canary]);
      assert.deepEqual(found, ['dlq.dlq_messages', 'dlq.message_facets']);
    });
    await system.db.query(sql`DELETE FROM dlq.dlq_messages WHERE original_topic = 'orders.v1'`);
  });

  test('is shown whole, byte for byte', async () => {
    const { body, text } = await system.api.get<Listed>(`${root}/${id}`);
    assert.equal(body.key, `key-${canary}`);
    assert.ok(text.includes(`"payload":${value}`), text);
    assert.equal(body.encrypted, true);
    assert.ok(body.error_stack?.includes(canary));
    const raw = await rawOf(system.api, id);
    assert.deepEqual([raw.key_text, raw.value_text], [`key-${canary}`, value]);
    assert.ok(raw.headers.some((one) => one.key === 'x-customer' && one.value === canary));
  });

  test('is downloaded, whole and in part', async () => {
    const read = async (headers: Readonly<Record<string, string>>): Promise<Response> =>
      fetch(`${system.url}${root}/${id}/value`, { headers });
    const whole = await read({});
    assert.deepEqual([whole.status, await whole.text()], [200, value]);
    const part = await read({ range: 'bytes=13-21' });
    assert.deepEqual([part.status, await part.text()], [206, value.slice(13, 22)]);
    assert.equal(part.headers.get('content-range'), `bytes 13-21/${value.length}`);
  });

  test('has no key among the suggestions', async () => {
    const { body } = await system.api.get<{ values: readonly unknown[] }>(`${root}/suggest?field=key`);
    assert.deepEqual(body.values, []);
  });

  test('is shown in lists', async () => {
    const { body } = await system.api.get<{ messages: readonly Listed[] }>(root);
    const one = body.messages.find((message) => message.id === id);
    assert.deepEqual(
      [one?.key, one?.payload_preview, one?.payload_bytes],
      [`key-${canary}`, value, Buffer.byteLength(value)],
    );
    const { text } = await system.api.get('/api/v1/dlq/payments.v1');
    assert.ok(text.includes(`"payload":${value}`), text);
  });

  test('is found by its key', async () => {
    for (const filter of [`key=key-${canary}`, `key=key-${canary}&topic=payments.*`]) {
      const { body } = await system.api.get<{ messages: readonly Listed[] }>(`${root}?${filter}`);
      assert.deepEqual(
        body.messages.map((message) => message.id),
        [id],
      );
    }
    const { body } = await system.api.get<{ messages: readonly Listed[] }>(`${root}?not_key=key-${canary}`);
    assert.ok(body.messages.every((message) => message.id !== id));
  });

  test('is found by the words of its error, not of its payload', async () => {
    type Found = { messages: readonly Listed[]; encrypted_not_searched?: boolean };
    const byPayload = await system.api.get<Found>(`${root}?text=${canary}`);
    assert.deepEqual([byPayload.body.messages, byPayload.body.encrypted_not_searched], [[], true]);
    const { body } = await system.api.get<{ error_message: string }>(`${root}/${id}`);
    const words = encodeURIComponent(body.error_message);
    const byError = await system.api.get<Found>(`${root}?text=${words}&topic=payments.v1`);
    assert.deepEqual(
      byError.body.messages.map((message) => message.id),
      [id],
    );
    const without = await system.api.get<Found>(root);
    assert.equal(without.body.encrypted_not_searched, undefined);
  });

  test('is published byte for byte by a retry', async () => {
    const { status, text } = await system.api.post(`${root}/${id}/retry`);
    assert.equal(status, 200, text);
    const [source] = (await broker.partitions((name) => name === 'payments.v1')).partitions;
    assert.ok(source !== undefined);
    const [fetched] = await broker.fetch(
      [{ topic: 'payments.v1', topicId: source.topicId, partition: 0, offset: 0n }],
      { maxWaitMs: 500, maxBytes: 1 << 20, maxBytesPerPartition: 1 << 20 },
      AbortSignal.timeout(5000),
    );
    assert.ok(fetched !== undefined && 'records' in fetched);
    const [record] = fetched.records;
    assert.deepEqual([record?.key?.toString(), record?.value?.toString()], [`key-${canary}`, value]);
    assert.ok(
      record?.headers.some(({ key, value: sent }) => String(key) === 'x-customer' && String(sent) === canary),
    );
  });
});

describe('an edit of an encrypted message', () => {
  const value = `{"customer":"${canary}"}`;
  const edited = `{"customer":"${canary}","edited":true}`;
  let id: string;
  before(async () => {
    id = await deadLetter('payments', { key: `edited-${canary}`, value });
    await edit(system.api, id, { value: edited });
    await edit(system.api, id, { headers: [{ key: 'x-customer', value: canary }] });
  });

  test('is encrypted, in all its versions', async () => {
    assert.deepEqual(await tablesWith(system.db, [canary]), []);
    const found = await Promise.all([0, 1, 2].map((version) => rawOf(system.api, id, version)));
    assert.deepEqual(
      found.map((raw) => raw.value_text),
      [value, edited, edited],
    );
    const versions = await versionsOf(system.api, id);
    assert.deepEqual(
      versions.map((one) => (one as unknown as Record<string, unknown>)['value_bytes']),
      [value, edited, edited].map((text) => Buffer.byteLength(text)),
    );
  });

  test('is compared with the original', async () => {
    const whole = await diffOf(system.api, id);
    assert.deepEqual(
      whole.value?.lines.filter((line) => /^[+-]/.test(line)),
      [`-  "customer": "${canary}"`, `+  "customer": "${canary}",`, '+  "edited": true'],
    );
    assert.equal(whole.key, null);
    assert.equal((await diffOf(system.api, id, '?from=1&to=2')).value, null);
  });

  test('finds the message by its new key', async () => {
    await edit(system.api, id, { key: 'another' });
    await eventually(async () => {
      const found = await system.api.get<{ messages: readonly Listed[] }>(`${root}?key=another`);
      assert.deepEqual(
        found.body.messages.map((message) => message.id),
        [id],
      );
    });
    const none = await system.api.get<{ messages: readonly Listed[] }>(`${root}?key=edited-${canary}`);
    assert.deepEqual(none.body.messages, []);
  });
});

describe('a redrive of encrypted messages', () => {
  test('sends those that can be decrypted, and leaves the others as they are', async () => {
    await system.db.query(sql`DELETE FROM dlq.dlq_messages`);
    const ids: string[] = [];
    for (const n of [1, 2, 3, 4])
      ids.push(await deadLetter('payments', { key: `k${n}`, value: `{"n":${n}}` }));
    const [, damaged = ''] = ids;
    // The value of another message.
    await system.db.query(sql`
      UPDATE dlq.dlq_messages SET raw_value = (SELECT raw_value FROM dlq.dlq_messages WHERE id = ${ids[0]})
      WHERE id = ${damaged}`);
    const answer = await system.api.post<Record<string, number>>('/api/v1/dlq/payments.v1/retry-all');
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual([answer.body['retried'], answer.body['skipped']], [3, 1], answer.text);
    const { body } = await system.api.get<Listed & { status: string; retry_count: number }>(
      `${root}/${damaged}`,
    );
    assert.deepEqual([body.status, body.retry_count], ['PENDING', 0]);
    assert.deepEqual([body.unreadable, body.key, body.payload], ['SYS_DLQ_CANNOT_DECRYPT', null, null]);
    assertError(await system.api.get(`${root}/${damaged}/raw`), 422, 'SYS_DLQ_CANNOT_DECRYPT');
    assertError(await system.api.post(`${root}/${damaged}/retry`), 422, 'SYS_DLQ_CANNOT_DECRYPT');
  });
});

describe('an encrypted message that was sent', () => {
  const value = `{"customer":"${canary}"}`;
  type State = Readonly<{ status: string; retry_count: number; error_stack: string | null }>;

  test('is the same message when it comes back, and its new stack is encrypted', async () => {
    const id = await deadLetter('payments', { key: 'returns', value });
    assert.equal((await system.api.post(`${root}/${id}/retry`)).status, 200);
    const headers = [
      ['error', 'it failed again'],
      ['x-exception-stacktrace', `Error: again ${canary}`],
      ['redrive-message-id', id],
      ['redrive-attempt', '1'],
    ].map(([name = '', text = '']) => ({ key: Buffer.from(name), value: Buffer.from(text) }));
    const record = {
      topic: 'payments.dlq.v1',
      key: Buffer.from('returns'),
      value: Buffer.from(value),
      headers,
    };
    await broker.publish([{ ...record, timestamp: 1n, compression: 'none' }], { timeoutMs: 5000 });
    await eventually(async () => {
      const { body } = await system.api.get<State>(`${root}/${id}`);
      assert.deepEqual([body.status, body.retry_count], ['PENDING', 1]);
      assert.ok(body.error_stack?.includes(`again ${canary}`));
    });
    const rows = await system.db.query(sql`SELECT 1 FROM dlq.dlq_messages WHERE parent_id = ${id}`);
    assert.deepEqual(rows, []);
    assert.deepEqual(await tablesWith(system.db, [canary]), []);
  });

  test('is compared with its record byte for byte', async () => {
    type Verified = Readonly<{ ok: boolean; different: Readonly<{ count: number }> }>;
    const verify = async (): Promise<Verified> => {
      const { body, text, status } = await system.api.get<Verified>(
        '/api/v1/dlq/sources/payments.dlq.v1/0/verify',
      );
      assert.equal(status, 200, text);
      return body;
    };
    await system.db.query(sql`DELETE FROM dlq.dlq_messages`);
    const id = await deadLetter('payments', { key: 'verified', value });
    assert.equal((await verify()).different.count, 0);
    await edit(system.api, id, { value: 'edited' });
    assert.equal((await verify()).different.count, 0);
    await system.db.query(sql`
      UPDATE dlq.message_versions SET value = set_byte(value, 20, get_byte(value, 20) # 1)
      WHERE message_id = ${id} AND version = 0`);
    assert.equal((await verify()).different.count, 1);
  });

  test('is planned by its key', async () => {
    const id = await deadLetter('payments', { key: 'planned', value });
    const { body } = await system.api.post<{ id: string }>('/api/v1/dlq/redrives', {
      filter: { key: 'planned' },
      reason: 'fixed',
    });
    await eventually(async () => {
      const items = await system.db.query<{ message_id: string }>(sql`
        SELECT message_id FROM dlq.redrive_items WHERE redrive_id = ${body.id}`);
      assert.deepEqual(items, [{ message_id: id }]);
    });
  });
});

describe('without its master key', () => {
  test('a replica shows that it cannot decrypt, and works on everything else', async () => {
    await system.db.query(sql`DELETE FROM dlq.dlq_messages`);
    const id = await deadLetter('payments', { key: 'a', value: '{"n":1}' });
    const other = await deadLetter('orders', { key: 'a', value: '{"n":2}' });
    const wrong = createMasterKeyFile(newMasterKey('first'));
    const replica = await startTestSystem({
      kafka: 'local',
      database: system.database,
      env: { PROTECT_ENCRYPT_TOPICS: 'payments.*', PROTECT_ENCRYPT_KEY_FILE: wrong.path },
    });
    try {
      const { body } = await replica.api.get<Listed>(`${root}/${id}`);
      assert.deepEqual([body.unreadable, body.key, body.encrypted], ['SYS_DLQ_KEY_UNAVAILABLE', null, true]);
      const list = await replica.api.get<{ messages: readonly Listed[] }>(root);
      assert.deepEqual(
        new Map(list.body.messages.map((message) => [message.id, message.unreadable])),
        new Map([
          [id, 'SYS_DLQ_KEY_UNAVAILABLE'],
          [other, undefined],
        ]),
      );
      assertError(await replica.api.post(`${root}/${id}/retry`), 503, 'SYS_DLQ_KEY_UNAVAILABLE');
      const after = await replica.api.get<{ status: string; retry_count: number }>(`${root}/${id}`);
      assert.deepEqual([after.body.status, after.body.retry_count], ['PENDING', 0]);
      const ready = await replica.api.get('/readyz');
      const { text: metrics } = await replica.api.get('/metrics');
      assert.match(metrics, /dlq_unreadable_total\{code="SYS_DLQ_KEY_UNAVAILABLE"\} [1-9]/);
      assert.match(ready.text, /"dlq_encryption":\{"status":"degraded","message":"[^"]*master key first/);
      // The right key again, without a restart.
      wrong.write(keys.read());
      await eventually(async () => {
        const again = await replica.api.get<Listed>(`${root}/${id}`);
        assert.deepEqual([again.body.unreadable, again.body.key], [undefined, 'a']);
      });
    } finally {
      await replica.stop();
    }
  });
});
