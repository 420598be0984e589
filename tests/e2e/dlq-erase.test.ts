import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { edit } from '../support/edits.ts';
import { createMasterKeyFile, newMasterKey, tablesWith } from '../support/encryption.ts';
import { eventually } from '../support/eventually.ts';
import { deadLetterTo } from '../support/local-dead-letters.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { archiveEverything } from '../support/stored-message.ts';

/** Erasing everything that is stored of the messages with a key. */

const path = '/api/v1/dlq/erasures';
const key = 'Customer4711';

type Erased = Readonly<{
  operation_id: string | null;
  messages: number;
  archived: number;
  redrive_items: number;
  remaining: number;
  topics: readonly string[];
}>;

let system: TestSystem;
let store: (topic: string, record: Readonly<{ key: string | null; value: string }>) => Promise<string>;
before(async () => {
  const keys = createMasterKeyFile(newMasterKey('first'));
  system = await startTestSystem({
    kafka: 'local',
    env: { PROTECT_ENCRYPT_TOPICS: 'payments.*', PROTECT_ENCRYPT_KEY_FILE: keys.path },
  });
  store = await deadLetterTo(system, ['payments', 'orders']);
});
after(() => system.drop());
beforeEach(async () => {
  await system.db.query(sql`DELETE FROM dlq.dlq_messages`);
  await system.db.query(sql`DELETE FROM dlq.dlq_messages_archive`);
  await system.db.query(sql`TRUNCATE dlq.message_history, dlq.redrives, dlq.redrive_items`);
});

async function erase(body: object = { key }): Promise<Erased> {
  const answer = await system.api.post<Erased>(path, { reason: 'request 17', ...body });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

const value = `{"customer":"${key}"}`;

describe('an erasure', () => {
  test('deletes encrypted and plain messages, live and archived, and every trace of them', async () => {
    const archived = await store('payments', { key, value });
    await system.api.post(`/api/v1/dlq/messages/${archived}/dead`);
    await archiveEverything(system.db);
    await store('payments', { key, value });
    const plain = await store('orders', { key, value });
    const other = await store('orders', { key: 'other', value: '{"n":1}' });
    await edit(system.api, plain, { value: '{"edited":true}', reason: 'it was wrong' });
    const redrive = await system.api.post<{ id: string }>('/api/v1/dlq/redrives', {
      filter: { key },
      reason: 'fixed',
    });
    await eventually(async () => {
      const { body } = await system.api.get<{ state: string }>(`/api/v1/dlq/redrives/${redrive.body.id}`);
      assert.equal(body.state, 'planned');
    });

    assert.equal((await erase({ key, dry_run: true })).remaining, 3);
    const erased = await erase();
    assert.deepEqual(
      [erased.messages, erased.archived, erased.redrive_items, erased.remaining],
      [2, 1, 2, 0],
      JSON.stringify(erased),
    );
    assert.deepEqual(erased.topics, ['orders.dlq.v1', 'payments.dlq.v1']);
    const left = await system.db.query<{ id: string }>(sql`SELECT id FROM dlq.dlq_messages`);
    assert.deepEqual(
      left.map(({ id }) => id),
      [other],
    );
    assert.deepEqual(await tablesWith(system.db, [key]), []);
    const events = await system.db.query<{ event: string }>(sql`
      SELECT event FROM dlq.message_history WHERE message_id = ${plain}`);
    assert.deepEqual(events, [{ event: 'erased' }]);
    const again = await erase();
    assert.deepEqual([again.messages, again.archived, again.remaining], [0, 0, 0]);
  });

  test('finds a message by the key of an earlier version', async () => {
    for (const topic of ['payments', 'orders']) {
      const id = await store(topic, { key, value });
      await edit(system.api, id, { key: 'corrected' });
    }
    assert.equal((await erase()).messages, 2);
  });

  test('is audited with its reason, and without the key', async () => {
    await store('payments', { key, value });
    const { operation_id: operation } = await erase();
    const rows = await system.db.query<{
      outcome: string;
      reason: string;
      item_count: number;
      topics: string[] | null;
    }>(sql`
      SELECT outcome, reason, item_count, topics FROM audit.events WHERE operation_id = ${operation}::uuid ORDER BY seq`);
    assert.deepEqual(
      rows.map((row) => [row.outcome, row.reason, row.topics]),
      [
        ['started', 'request 17', null],
        ['success', 'request 17', ['payments.v1']],
        ['success', 'request 17', null],
      ],
    );
    assert.deepEqual(await tablesWith(system.db, [key]), []);
  });

  test('leaves a message that is being retried, and says so', async () => {
    const id = await store('payments', { key, value });
    await system.db.query(sql`
      UPDATE dlq.dlq_messages SET status = 'RETRYING', lease_until = clock_timestamp() + interval '1 minute'
      WHERE id = ${id}`);
    const erased = await erase();
    assert.deepEqual([erased.messages, erased.remaining], [0, 1]);
    await system.db.query(sql`UPDATE dlq.dlq_messages SET lease_until = clock_timestamp() WHERE id = ${id}`);
    assert.equal((await erase()).messages, 1);
  });

  test('does not come back when the topic is read again', async () => {
    await store('orders', { key, value });
    await erase();
    const seek = await system.api.post('/api/v1/dlq/sources/orders.dlq.v1/0/seek', {
      earliest: true,
      reason: 'read again',
    });
    assert.equal(seek.status, 200, seek.text);
    // Read after the records from before.
    await store('orders', { key: 'after', value: '{"n":2}' });
    const rows = await system.db.query(sql`
      SELECT id FROM dlq.dlq_messages WHERE message_key = convert_to(${key}, 'UTF8')`);
    assert.deepEqual(rows, []);
  });

  test('takes a key that is not text', async () => {
    await store('orders', { key, value });
    assert.equal(
      (await erase({ key: undefined, key_base64: Buffer.from(key).toString('base64') })).messages,
      1,
    );
    for (const body of [{}, { key, key_base64: 'eA==' }, { key_base64: 'x' }, { key: '' }])
      assertError(await system.api.post(path, { reason: 'r', ...body }), 400, 'SYS_DLQ_VALIDATION_ERROR');
  });
});
