import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Broker, OutgoingRecord, PublishResult } from '../../src/platform/broker/port.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, sortedStatuses } from '../support/api-client.ts';
import { edit, rawOf, storeOneRecord, tagOf, tryEdit, versionsOf } from '../support/edits.ts';
import { itemsOf, planRedrive, runToEnd } from '../support/redrives.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import {
  archiveEverything,
  historyOf,
  showMessage,
  storeMessage,
  storeRecords,
} from '../support/stored-message.ts';

/** What an edit makes, when it is refused, and what is published afterwards. */

const topic = 'orders.v1';
const root = '/api/v1/dlq/messages';

let system: TestSystem;
let sent: OutgoingRecord[];
let publish: ((records: readonly OutgoingRecord[]) => Promise<readonly PublishResult[]>) | null;
before(async () => {
  system = await startTestSystem({
    kafka: 'local',
    env: { DLQ_ALLOWED_TARGETS: 'orders.*' },
    wrap: {
      broker: (broker): Broker => ({
        ...broker,
        publish(records, options) {
          sent.push(...records);
          return publish === null ? broker.publish(records, options) : publish(records);
        },
      }),
    },
  });
  for (const name of [topic, 'orders.v2', 'bills.v1']) await system.broker?.createTopic(name, 1);
});
after(() => system.drop());
beforeEach(async () => {
  sent = [];
  publish = null;
  await system.db.query(sql`DELETE FROM dlq.dlq_messages`);
});

const retry = (id: string) => system.api.post(`${root}/${id}/retry`);
const unknown: PublishResult = { result: 'unknown', code: 'TIMEOUT', message: 'no answer' };

const storeRecord = (): Promise<string> => storeOneRecord(system.db, topic, '{"qty":1}');

/** A message whose only attempt ended without an answer. */
async function storeInDoubt(): Promise<string> {
  const id = await storeRecord();
  publish = async (records) => records.map(() => unknown);
  assert.equal((await retry(id)).status, 503);
  publish = null;
  sent = [];
  return id;
}

describe('an edit', () => {
  test('makes a new version, keeps the original, and says who made it and why', async () => {
    const id = await storeRecord();
    const tag = await tagOf(system.api, id);
    const headers = [{ key: 'tenant', value: 'acme' }];
    const answer = await tryEdit(system.api, id, { value: '{"qty":2}', key: null, headers });
    assert.deepEqual(answer.body, { id, version: 1 });
    assert.notEqual(await tagOf(system.api, id), tag);
    assert.equal(answer.headers.get('etag'), await tagOf(system.api, id));

    const message = await showMessage(system.api, id);
    assert.deepEqual([message.version, message.payload, message.key], [1, { qty: 2 }, null]);
    const [original, newest] = [await rawOf(system.api, id, 0), await rawOf(system.api, id)];
    assert.deepEqual([original.version, original.key_text, original.value_text], [0, 'k', '{"qty":1}']);
    assert.deepEqual([newest.version, newest.key_text, newest.value_text], [1, undefined, '{"qty":2}']);
    assert.deepEqual(newest.headers, [{ key: 'tenant', value: 'acme', value_base64: 'YWNtZQ==' }]);
    assert.deepEqual(
      (await versionsOf(system.api, id)).map(({ version, actor, reason }) => [version, actor, reason]),
      [
        [0, 'ingest', null],
        [1, 'ada', 'it was wrong'],
      ],
    );
    const last = (await historyOf(system.api, id)).at(-1);
    assert.deepEqual(
      [last?.event, last?.actor, last?.version, last?.detail],
      ['edited', 'ada', 1, 'version 1: key, value, headers'],
    );
  });

  test('changes what it names, of the version before', async () => {
    const id = await storeRecord();
    assert.equal(await edit(system.api, id, { key: 'other' }), 1);
    assert.equal(await edit(system.api, id, { value: 'not JSON' }), 2);
    const { key_text: key, value_text: value } = await rawOf(system.api, id);
    assert.deepEqual([key, value], ['other', 'not JSON']);
    assert.equal((await showMessage(system.api, id)).payload, null);
  });

  test('of a message that was inserted without a record keeps its payload as the original', async () => {
    const id = await storeMessage(system.db, { topic, payload: { qty: 1 } });
    await edit(system.api, id, { key: 'k' });
    assert.deepEqual((await rawOf(system.api, id)).value_text, '{"qty": 1}');
    assert.deepEqual((await showMessage(system.api, id)).payload, { qty: 1 });
    assert.equal((await retry(id)).status, 200);
    assert.deepEqual([sent[0]?.key?.toString(), sent[0]?.value?.toString()], ['k', '{"qty": 1}']);
  });

  test('of a message without a value has to give it one, which may be null', async () => {
    const id = await storeMessage(system.db, { topic });
    await system.db.query(sql`UPDATE dlq.dlq_messages SET payload = NULL WHERE id = ${id}`);
    const error = assertError(await tryEdit(system.api, id, { key: 'k' }), 409, 'SYS_DLQ_CONFLICT');
    assert.equal(error.details[0]?.field, 'value');
    await edit(system.api, id, { key: 'k', value: null });
    assert.equal((await retry(id)).status, 200);
    assert.deepEqual([sent[0]?.value, sent[0]?.key?.toString()], [null, 'k']);
  });

  test('that says nothing, or one thing twice, is refused', async () => {
    const id = await storeRecord();
    assertError(await tryEdit(system.api, id, {}), 422, 'SYS_DLQ_WRONG_EDIT');
    const both = { value: 'a', value_base64: 'YQ==' };
    assertError(await tryEdit(system.api, id, both), 422, 'SYS_DLQ_WRONG_EDIT');
    const ours = { headers: [{ key: 'redrive-attempt', value: '1' }] };
    assertError(await tryEdit(system.api, id, ours), 422, 'SYS_DLQ_WRONG_EDIT');
    assertError(await tryEdit(system.api, id, { value: 'a', reason: ' ' }), 400);
    assert.equal((await showMessage(system.api, id)).version, 0);
  });

  test('of a hundred versions is the last one', async () => {
    const id = await storeRecord();
    await system.db.query(sql`UPDATE dlq.dlq_messages SET version = 100 WHERE id = ${id}`);
    const error = assertError(await tryEdit(system.api, id, { value: 'a' }), 409, 'SYS_DLQ_CONFLICT');
    assert.match(error.message, /100 versions/);
  });
});

describe('the target topic', () => {
  test('must be one of dlq.allowed_targets, and is that of the version', async () => {
    const id = await storeRecord();
    for (const [target, why] of [
      ['bills.v1', /dlq\.allowed_targets/],
      ['orders.dlq.v1', /dead-letter topic/],
      ['orders v2', /is not the name of a topic/],
    ] as const) {
      const answer = await tryEdit(system.api, id, { target_topic: target });
      assert.match(assertError(answer, 422, 'SYS_DLQ_WRONG_TARGET').message, why);
    }
    await edit(system.api, id, { target_topic: 'orders.v2' });
    assert.deepEqual(
      (await versionsOf(system.api, id)).map((version) => version.target_topic),
      [topic, 'orders.v2'],
    );
    assert.equal((await retry(id)).status, 200);
    assert.equal(sent[0]?.topic, 'orders.v2');
  });

  test('of a routed message is bound by the rule again', async () => {
    const id = await storeRecord();
    await system.api.post(`${root}/${id}/route`, { target_topic: 'bills.v1', reason: 'once' });
    await edit(system.api, id, { value: 'a' });
    const routed = await system.api.get<{ routed: boolean }>(`${root}/${id}`);
    assert.equal(routed.body.routed, true);
    await edit(system.api, id, { target_topic: 'orders.v2' });
    const edited = await system.api.get<{ routed: boolean }>(`${root}/${id}`);
    assert.equal(edited.body.routed, false);
  });
});

describe('the precondition', () => {
  test('is required, and an earlier state does not meet it', async () => {
    const id = await storeRecord();
    const body = { value: 'a', reason: 'why' };
    assertError(await system.api.post(`${root}/${id}/edit`, body), 428, 'SYS_DLQ_PRECONDITION_REQUIRED');
    for (const tag of ['*', 'x'])
      assertError(await tryEdit(system.api, id, { value: 'a' }, tag), 400, 'SYS_DLQ_VALIDATION_ERROR');
    const tag = await tagOf(system.api, id);
    await system.api.post(`${root}/${id}/dead`);
    const stale = await tryEdit(system.api, id, { value: 'a' }, tag);
    const error = assertError(stale, 412, 'SYS_DLQ_PRECONDITION_FAILED');
    assert.ok(error.message.endsWith(await tagOf(system.api, id)), error.message);
    assert.equal((await showMessage(system.api, id)).version, 0);
  });

  test('lets exactly one of several edits through', async () => {
    const id = await storeRecord();
    const tag = await tagOf(system.api, id);
    const edits = Array.from({ length: 8 }, (_, i) =>
      tryEdit(system.api, id, { value: `{"qty":${i}}` }, tag),
    );
    const answers = await Promise.all(edits);
    assert.deepEqual(sortedStatuses(answers), [200, ...Array.from({ length: 7 }, () => 412)]);
    assert.equal((await versionsOf(system.api, id)).length, 2);
    const winner = answers.findIndex(({ status }) => status === 200);
    assert.deepEqual((await showMessage(system.api, id)).payload, { qty: winner });
  });
});

describe('the status', () => {
  test('of a dead message stays, until it is reopened', async () => {
    const id = await storeRecord();
    await system.api.post(`${root}/${id}/dead`);
    await edit(system.api, id, { value: 'a' });
    assert.equal((await showMessage(system.api, id)).status, 'DEAD');
    assertError(await retry(id), 409);
    await system.api.post(`${root}/${id}/reopen`, { reason: 'corrected' });
    assert.equal((await retry(id)).status, 200);
    assert.equal(sent[0]?.value?.toString(), 'a');
  });

  test('of a resolved, archived or unknown message refuses it', async () => {
    const id = await storeRecord();
    assert.equal((await retry(id)).status, 200);
    const tag = await tagOf(system.api, id);
    const resolved = await tryEdit(system.api, id, { value: 'a' });
    assert.match(assertError(resolved, 409, 'SYS_DLQ_CONFLICT').message, /status=RESOLVED/);
    await archiveEverything(system.db);
    const archived = await tryEdit(system.api, id, { value: 'a' });
    assert.match(assertError(archived, 409, 'SYS_DLQ_CONFLICT').message, /archived, reopen it first/);
    assertError(await tryEdit(system.api, randomUUID(), { value: 'a' }, tag), 404, 'SYS_DLQ_NOT_FOUND');
  });

  test('refuses it while a retry is running, which publishes what it has claimed', async () => {
    const id = await storeRecord();
    const tag = await tagOf(system.api, id);
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<readonly PublishResult[]>();
    publish = () => {
      started.resolve();
      return answer.promise;
    };
    const retrying = retry(id);
    await started.promise;
    for (const given of [tag, undefined]) {
      const refused = await tryEdit(system.api, id, { value: 'a' }, given);
      assert.match(assertError(refused, 409, 'SYS_DLQ_CONFLICT').message, /a retry is running/);
    }
    answer.resolve([{ result: 'acked', partition: 0, offset: 0n }]);
    assert.equal((await retrying).status, 200);
    assert.equal(sent[0]?.value?.toString(), '{"qty":1}');
  });
});

describe('a message whose newest attempt is in doubt', () => {
  test('is not edited, but may be sent again as it is', async () => {
    const id = await storeInDoubt();
    const refused = assertError(await tryEdit(system.api, id, { value: 'a' }), 409, 'SYS_DLQ_CONFLICT');
    assert.deepEqual([refused.details[0]?.field, refused.details[0]?.reason], ['may_send_twice', 'in_doubt']);
    assert.equal((await retry(id)).status, 200, 'the same version may be sent again');
    assert.equal(sent[0]?.value?.toString(), '{"qty":1}');
  });

  test('is edited if it may be sent twice, and its history says so', async () => {
    const id = await storeInDoubt();
    assert.equal(await edit(system.api, id, { value: 'a', may_send_twice: true }), 1);
    assert.match((await historyOf(system.api, id)).at(-1)?.detail ?? '', /; may be sent twice$/);
    assertError(await tryEdit(system.api, id, { value: 'b' }), 409);
  });

  test('stays in doubt whatever is decided about it', async () => {
    const id = await storeInDoubt();
    await system.api.post(`${root}/${id}/dead`);
    await system.api.post(`${root}/${id}/reopen`, { reason: 'why' });
    assertError(await tryEdit(system.api, id, { value: 'a' }), 409);
  });

  test('is so too if its worker was lost, and the caller has to read it again', async () => {
    const id = await storeRecord();
    const tag = await tagOf(system.api, id);
    await system.db.query(sql`
      UPDATE dlq.dlq_messages SET status = 'RETRYING', retry_count = 1, attempt_no = 1,
             lease_owner = 'lost', lease_until = clock_timestamp() - interval '1 second'
      WHERE id = ${id}`);
    assertError(await tryEdit(system.api, id, { value: 'a' }, tag), 412);
    assertError(await tryEdit(system.api, id, { value: 'a' }), 409, 'SYS_DLQ_CONFLICT');
    await edit(system.api, id, { value: 'a', may_send_twice: true });
  });
});

describe('after an edit', () => {
  test('a retry publishes the new record with its version, and the original has none', async () => {
    const id = await storeRecord();
    const versionOf = (record: OutgoingRecord | undefined): string | undefined =>
      record?.headers.find(({ key }) => key.toString() === 'redrive-version')?.value?.toString();
    await system.db.query(sql`
      UPDATE dlq.dlq_messages SET dialect = 'plain', headers = '[{"key":"error","value":"it failed"},{"key":"a","value":"1"}]'`);
    assert.equal((await retry(id)).status, 200);
    await system.api.post(`${root}/${id}/reopen`, { reason: 'again' });
    await edit(system.api, id, { value: '{"qty":2}' });
    assert.equal((await retry(id)).status, 200);
    assert.deepEqual(sent.map(versionOf), [undefined, '1']);
    assert.deepEqual(
      sent[1]?.headers.map(({ key }) => key.toString()),
      ['a', 'redrive-message-id', 'redrive-attempt', 'redrive-version'],
    );
    const started = (await historyOf(system.api, id)).filter(({ event }) => event === 'retry_started');
    assert.deepEqual(
      started.map(({ version }) => version),
      [null, 1],
    );
  });

  test('retry-all publishes the newest version', async () => {
    await storeRecords(system.db, topic, [
      { key: 'a', value: '1' },
      { key: 'b', value: '2' },
    ]);
    const [first] = await system.db.query<{ id: string }>(sql`
      SELECT id FROM dlq.dlq_messages WHERE message_key = 'a'`);
    await edit(system.api, first?.id ?? '', { value: '10', key: 'c' });
    assert.equal((await system.api.post(`/api/v1/dlq/${topic}/retry-all`)).status, 200);
    assert.deepEqual(sent.map(({ key, value }) => `${String(key)} ${String(value)}`).toSorted(), [
      'b 2',
      'c 10',
    ]);
  });

  test('a redrive that was planned before skips the message, and one that is planned now sends it', async () => {
    const id = await storeRecord();
    const planned = await planRedrive(system.api, { filter: { topic } });
    await edit(system.api, id, { value: '{"qty":2}', target_topic: 'orders.v2' });
    await runToEnd(system.api, planned.id);
    const [item] = await itemsOf(system.api, planned.id);
    assert.deepEqual([item?.outcome, item?.reason], ['skipped', 'changed since the plan']);
    assert.equal(sent.length, 0);
    const next = await planRedrive(system.api, { filter: { topic: 'orders.v2' } });
    assert.deepEqual(
      next.targets.map(({ topic: target }) => target),
      ['orders.v2'],
    );
    await runToEnd(system.api, next.id);
    assert.deepEqual(
      sent.map(({ topic: target, value }) => `${target} ${String(value)}`),
      ['orders.v2 {"qty":2}'],
    );
  });
});
