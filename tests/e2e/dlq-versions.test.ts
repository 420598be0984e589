import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { diffOf, edit, rawOf, storeOneRecord, versionsOf } from '../support/edits.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { archiveEverything, showMessage } from '../support/stored-message.ts';

/** What is kept of the versions of an edited message, how they are compared, and how long they live. */

const topic = 'orders.v1';
const root = '/api/v1/dlq/messages';

let system: TestSystem;
before(async () => void (system = await startTestSystem()));
after(() => system.drop());
beforeEach(() => system.db.query(sql`DELETE FROM dlq.dlq_messages`));

const storeRecord = (value = '{"qty":1}'): Promise<string> => storeOneRecord(system.db, topic, value);

describe('versions', () => {
  test('are compared in key, headers, target and value', async () => {
    const id = await storeRecord('{"id":7,"qty":1}');
    await edit(system.api, id, { headers: [{ key: 'tenant', value: 'acme' }], key: 'x' });
    await edit(system.api, id, { value: '{"id":7,"qty":2}', target_topic: 'orders.v2' });
    const whole = await diffOf(system.api, id);
    assert.deepEqual([whole.from, whole.to], [0, 2]);
    assert.notEqual(whole.key, null);
    assert.deepEqual(whole.target_topic, { from: topic, to: 'orders.v2' });
    assert.deepEqual(
      whole.headers?.added.map(({ name }) => name),
      ['tenant'],
    );
    assert.deepEqual(
      whole.value?.lines.filter((line) => /^[+-]/.test(line)),
      ['-  "qty": 1', '+  "qty": 2'],
    );
    const second = await diffOf(system.api, id, '?from=1&to=2');
    assert.deepEqual([second.key, second.headers], [null, null]);
    const none = await diffOf(system.api, id, '?from=2');
    assert.deepEqual([none.key, none.headers, none.target_topic, none.value], [null, null, null, null]);
  });

  test('of an unedited message are the original alone', async () => {
    const id = await storeRecord();
    assert.deepEqual(
      (await versionsOf(system.api, id)).map(({ version }) => version),
      [0],
    );
    assert.equal((await diffOf(system.api, id)).value, null);
  });

  test('that are not there are 404, and a range from back to front is 400', async () => {
    const id = await storeRecord();
    for (const path of ['/versions/1', '/raw?version=1', '/diff?to=1'])
      assertError(await system.api.get(`${root}/${id}${path}`), 404, 'SYS_DLQ_NOT_FOUND');
    for (const path of ['/versions', '/versions/0', '/raw', '/diff'])
      assertError(await system.api.get(`${root}/${randomUUID()}${path}`), 404, 'SYS_DLQ_NOT_FOUND');
    for (const path of ['/diff?from=1&to=0', '/versions/-1', '/raw?version=x'])
      assertError(await system.api.get(`${root}/${id}${path}`), 400, 'SYS_DLQ_VALIDATION_ERROR');
  });

  test('a large value with many lines is compared within its limits', async () => {
    const id = await storeRecord('a\n'.repeat(300_000));
    await edit(system.api, id, { value: 'b\n'.repeat(300_000) });
    const { value } = await diffOf(system.api, id);
    assert.equal(value?.format, 'text');
    assert.ok(value.lines.length <= 2000);
  });

  test('are moved to the archive and back with their message, and die with it', async () => {
    const count = async (id: string): Promise<bigint | undefined> => {
      const rows = await system.db.query<{ count: bigint }>(sql`
        SELECT count(*) AS count FROM dlq.message_versions WHERE message_id = ${id}`);
      return rows[0]?.count;
    };
    const id = await storeRecord();
    await edit(system.api, id, { value: '{"qty":2}' });
    await system.api.post(`${root}/${id}/dead`);
    await archiveEverything(system.db);
    const archived = await showMessage(system.api, id);
    assert.deepEqual([archived.archived, archived.version, archived.payload], [true, 1, { qty: 2 }]);
    assert.equal((await rawOf(system.api, id, 0)).value_text, '{"qty":1}');
    await system.api.post(`${root}/${id}/reopen`, { reason: 'again' });
    assert.equal((await showMessage(system.api, id)).archived, false);
    assert.equal(await count(id), 2n);
    await system.api.delete(`${root}/${id}`);
    assert.equal(await count(id), 0n);

    const other = await storeRecord();
    await edit(system.api, other, { value: 'a' });
    await system.api.post(`${root}/${other}/dead`);
    await archiveEverything(system.db);
    await system.db.call(sql`CALL dlq.purge_archived_dlq_messages(-1)`);
    assert.equal(await count(other), 0n);
  });
});
