import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, sortedStatuses } from '../support/api-client.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import {
  archiveEverything,
  historyOf,
  showMessage,
  storeMessage,
  type MessageView,
  type StoredMessage,
} from '../support/stored-message.ts';

const root = '/api/v1/dlq';

let system: TestSystem;
before(async () => {
  system = await startTestSystem();
});
after(() => system.drop());

const pathOf = (id: string, action = ''): string => `${root}/messages/${id}${action}`;

/** A message that a living worker is retrying. */
async function storeLeased(): Promise<string> {
  const id = await storeMessage(system.db, { status: 'RETRYING', retryCount: 1 });
  await system.db.query(sql`
    UPDATE dlq.dlq_messages SET lease_owner = 'somebody', lease_until = clock_timestamp() + interval '1 minute'
    WHERE id = ${id}`);
  return id;
}

describe('raw', () => {
  test('a row inserted without a record shows its payload as its value', async () => {
    const id = await storeMessage(system.db, { payload: { order_id: 'ü' } });
    const { status, body } = await system.api.get(pathOf(id, '/raw'));
    assert.equal(status, 200);
    const value = '{"order_id": "ü"}';
    assert.deepEqual(body, {
      id,
      key_base64: null,
      value_base64: Buffer.from(value).toString('base64'),
      value_text: value,
      headers: [],
      version: 0,
    });
  });

  test('an unknown id is 404, a wrong one 400', async () => {
    assertError(await system.api.get(pathOf(randomUUID(), '/raw')), 404, 'SYS_DLQ_NOT_FOUND');
    assertError(await system.api.get(pathOf('x', '/raw')), 400, 'SYS_DLQ_VALIDATION_ERROR');
  });
});

describe('history', () => {
  test('it tells every transition with who and why, and outlives the message', async () => {
    const id = await storeMessage(system.db);
    assert.deepEqual(await historyOf(system.api, id), []);
    await system.api.post(pathOf(id, '/retry'), undefined, { 'x-actor': 'ada' });
    await system.api.post(
      pathOf(id, '/reopen'),
      { reason: 'the consumer is repaired' },
      { 'x-actor': 'bob' },
    );
    await system.api.post(pathOf(id, '/dead'));
    await system.api.delete(pathOf(id));
    const history = await historyOf(system.api, id);
    assert.deepEqual(
      history.map((entry) => [entry.event, entry.actor, entry.status_from, entry.status_to, entry.reason]),
      [
        ['retry_started', 'ada', 'PENDING', 'RETRYING', null],
        ['resolved_unpublished', 'ada', 'RETRYING', 'RESOLVED', null],
        ['reopened', 'bob', 'RESOLVED', 'PENDING', 'the consumer is repaired'],
        ['marked_dead', 'anonymous', 'PENDING', 'DEAD', null],
        ['deleted', 'anonymous', 'DEAD', null, null],
      ],
    );
    assert.deepEqual(Object.keys(history[0] ?? {}), [
      'at',
      'event',
      'actor',
      'reason',
      'status_from',
      'status_to',
      'retry_count',
      'attempt_no',
      'topic',
      'partition',
      'offset',
      'detail',
      'redrive_id',
      'version',
    ]);
  });

  test('one that is too large for an answer is refused before it is read', async () => {
    const id = await storeMessage(system.db);
    await system.db.query(sql`
      INSERT INTO dlq.message_history (message_id, event, actor, retry_count, attempt_no, lease_epoch, detail)
      SELECT ${id}, 'repeated', 'ingest', 0, 0, 0, repeat('x', 7000) FROM generate_series(1, 10000)`);
    assertError(await system.api.get(pathOf(id, '/history')), 413);
  });

  test('an id that never was is 404', async () => {
    assertError(await system.api.get(pathOf(randomUUID(), '/history')), 404, 'SYS_DLQ_NOT_FOUND');
  });

  test('an actor from outside is cleaned and cut', async () => {
    const id = await storeMessage(system.db);
    const actor = Buffer.from(`ü\u200b  ${'x'.repeat(300)}`).toString('latin1');
    await system.api.raw({
      method: 'POST',
      path: pathOf(id, '/dead'),
      headers: { 'x-actor': actor, 'content-length': '0' },
    });
    const [entry] = await historyOf(system.api, id);
    assert.equal(entry?.actor, `ü ${'x'.repeat(253)}`);
  });
});

/** What each action does to each state: the status after it, or the refusal. */
const actions: readonly Readonly<{
  from: string;
  store: () => Promise<string>;
  dead: string;
  reopen: string;
  remove: string;
}>[] = [
  {
    from: 'PENDING',
    store: state({}),
    dead: 'DEAD',
    reopen: 'status=PENDING, retry_count=0/3',
    remove: 'gone',
  },
  {
    from: 'PENDING at max',
    store: state({ retryCount: 3 }),
    dead: 'DEAD',
    reopen: 'PENDING',
    remove: 'gone',
  },
  {
    from: 'RETRYING without a lease',
    store: state({ status: 'RETRYING', retryCount: 1 }),
    dead: 'DEAD',
    // Whether or not the reaper has been there already.
    reopen: 'status=(RETRYING|PENDING), retry_count=1/3',
    remove: 'gone',
  },
  {
    from: 'RETRYING',
    store: storeLeased,
    dead: 'a retry is running',
    reopen: 'a retry is running',
    remove: 'a retry is running',
  },
  {
    from: 'RESOLVED',
    store: state({ status: 'RESOLVED', retryCount: 1 }),
    dead: 'status=RESOLVED, retry_count=1/3',
    reopen: 'PENDING',
    remove: 'gone',
  },
  {
    from: 'DEAD',
    store: state({ status: 'DEAD', retryCount: 3 }),
    dead: 'status=DEAD, retry_count=3/3',
    reopen: 'PENDING',
    remove: 'gone',
  },
];

function state(message: StoredMessage): () => Promise<string> {
  return () => storeMessage(system.db, message);
}

describe('what a person does to a message', () => {
  for (const { from, store, dead, reopen, remove } of actions) {
    test(`${from}: giving up ends in ${dead}`, async () => {
      const id = await store();
      const answer = await system.api.post<MessageView>(pathOf(id, '/dead'), { reason: 'hopeless' });
      if (dead === 'DEAD') assert.deepEqual([answer.status, answer.body.status], [200, 'DEAD']);
      else
        assert.equal(
          assertError(answer, 409, 'SYS_DLQ_CONFLICT').message,
          `message cannot be marked dead: ${dead}`,
        );
    });

    test(`${from}: reopening ends in ${reopen}`, async () => {
      const id = await store();
      const answer = await system.api.post<MessageView>(pathOf(id, '/reopen'), { reason: 'repaired' });
      if (reopen === 'PENDING')
        assert.deepEqual(
          [answer.status, answer.body.status, answer.body.retry_count, answer.body.resolution],
          [200, 'PENDING', 0, null],
        );
      else
        assert.match(
          assertError(answer, 409, 'SYS_DLQ_CONFLICT').message,
          new RegExp(`^message cannot be reopened: ${reopen}$`),
        );
    });

    test(`${from}: deleting ends in ${remove}`, async () => {
      const id = await store();
      const answer = await system.api.delete(pathOf(id));
      if (remove === 'gone') {
        assert.equal(answer.status, 200);
        assertError(await system.api.get(pathOf(id)), 404, 'SYS_DLQ_NOT_FOUND');
      } else
        assert.equal(
          assertError(answer, 409, 'SYS_DLQ_CONFLICT').message,
          `message cannot be deleted: ${remove}`,
        );
    });
  }

  test('reopening needs a reason that says something', async () => {
    const id = await storeMessage(system.db, { status: 'DEAD', retryCount: 3 });
    for (const body of [
      undefined,
      {},
      { reason: '' },
      { reason: '  \n ' },
      { reason: 7 },
      { reason: null },
      { reason: 'x'.repeat(1001) },
    ]) {
      const answer = await system.api.post(pathOf(id, '/reopen'), body);
      const error = assertError(answer, 400, 'SYS_DLQ_VALIDATION_ERROR');
      assert.equal(error.details[0]?.field, 'reason');
    }
    assert.equal((await showMessage(system.api, id)).status, 'DEAD');
  });

  test('a reopened message has a new budget, and its attempts go on counting', async () => {
    const id = await storeMessage(system.db, { maxRetries: 1 });
    await system.api.post(pathOf(id, '/retry'));
    await system.api.post(pathOf(id, '/reopen'), { reason: 'again' });
    assert.equal((await system.api.post(pathOf(id, '/retry'))).status, 200);
    const message = await showMessage(system.api, id);
    assert.deepEqual([message.retry_count, message.attempt_no], [1, 2]);
  });

  test('an action whose answer is too large is refused, and has changed nothing', async () => {
    const id = await storeMessage(system.db);
    await system.db.query(sql`
      UPDATE dlq.dlq_messages SET error_message = repeat('x', ${65 << 20}) WHERE id = ${id}`);
    const reason = { reason: 'too large' };
    assertError(await system.api.post(pathOf(id, '/dead'), reason), 413);
    assertError(await system.api.post(pathOf(id, '/route'), { ...reason, target_topic: 'b.v1' }), 413);
    assertError(await system.api.post(pathOf(id, '/reopen'), reason), 413);
    assert.deepEqual(await historyOf(system.api, id), []);
    const deleted = await system.api.delete(pathOf(id));
    assert.equal(deleted.status, 200);
  });

  test('a message whose worker was lost can be routed at once', async () => {
    const id = await storeLeased();
    const route = () =>
      system.api.post<MessageView>(pathOf(id, '/route'), { target_topic: 'b.v1', reason: 'moved' });
    assertError(await route(), 409, 'SYS_DLQ_CONFLICT');
    await system.db.query(sql`
      UPDATE dlq.dlq_messages SET lease_until = clock_timestamp() - interval '1 second' WHERE id = ${id}`);
    const { status, body } = await route();
    assert.deepEqual([status, body.status, body.original_topic], [200, 'PENDING', 'b.v1']);
    const events = (await historyOf(system.api, id)).map(({ event }) => event);
    assert.deepEqual(events, ['lease_expired', 'routed']);
  });

  test('of two simultaneous deletions one is told that it is gone', async () => {
    const id = await storeMessage(system.db);
    const answers = await Promise.all([system.api.delete(pathOf(id)), system.api.delete(pathOf(id))]);
    assert.deepEqual(sortedStatuses(answers), [200, 404]);
  });
});

describe('an archived message', () => {
  async function storeArchived(): Promise<string> {
    const id = await storeMessage(system.db, { status: 'RESOLVED', retryCount: 2, payload: { n: 1 } });
    await archiveEverything(system.db);
    return id;
  }

  test('it is shown by itself, with its bytes and its history', async () => {
    const id = await storeArchived();
    const message = await showMessage(system.api, id);
    assert.deepEqual([message.archived, message.status, message.payload], [true, 'RESOLVED', { n: 1 }]);
    const { body } = await system.api.get<{ value_text: string }>(pathOf(id, '/raw'));
    assert.equal(body.value_text, '{"n": 1}');
    assert.deepEqual(await historyOf(system.api, id), []);
  });

  test('it can be neither retried nor marked dead', async () => {
    const id = await storeArchived();
    const retried = assertError(await system.api.post(pathOf(id, '/retry')), 409, 'SYS_DLQ_CONFLICT');
    assert.equal(retried.message, 'message is not retryable: status=RESOLVED, retry_count=2/3, archived');
    const dead = assertError(await system.api.post(pathOf(id, '/dead')), 409, 'SYS_DLQ_CONFLICT');
    assert.equal(dead.message, 'message cannot be marked dead: archived, reopen it first');
  });

  test('reopening moves it back', async () => {
    const id = await storeArchived();
    const { status, body } = await system.api.post<MessageView>(pathOf(id, '/reopen'), { reason: 'needed' });
    assert.deepEqual([status, body.archived, body.status, body.retry_count], [200, false, 'PENDING', 0]);
    const rows = await system.db.query(sql`SELECT 1 FROM dlq.dlq_messages_archive WHERE id = ${id}`);
    assert.equal(rows.length, 0);
    assert.equal((await system.api.post(pathOf(id, '/retry'))).status, 200);
  });

  test('two simultaneous reopenings end in one live message', async () => {
    const id = await storeArchived();
    const answers = await Promise.all(
      [1, 2].map(() => system.api.post(pathOf(id, '/reopen'), { reason: 'needed' })),
    );
    assert.deepEqual(sortedStatuses(answers), [200, 409]);
    assert.equal((await showMessage(system.api, id)).archived, false);
  });
});

describe('deleting an archived message', () => {
  test('leaves its history, and reading its record again does not bring it back', async () => {
    const id = await storeMessage(system.db, { status: 'DEAD' });
    const topicId = randomUUID();
    await system.db.query(sql`
      UPDATE dlq.dlq_messages SET source_topic = 'gone.dlq.v1', source_topic_id = ${topicId}, source_partition = 0,
             source_offset = 7 WHERE id = ${id}`);
    await archiveEverything(system.db);
    assert.equal((await showMessage(system.api, id)).archived, true);
    const { status, body } = await system.api.delete(pathOf(id));
    assert.deepEqual([status, body], [200, { success: true, message: `message ${id} deleted` }]);
    assertError(await system.api.get(pathOf(id)), 404);
    assert.deepEqual(
      (await historyOf(system.api, id)).map(({ event, status_from }) => [event, status_from]),
      [['deleted', 'DEAD']],
    );
    const taken = await system.db.query(sql`
      SELECT kind, "offset", message_id FROM dlq.arrivals WHERE topic_id = ${topicId}`);
    assert.deepEqual(taken, [{ kind: 'deleted', offset: 7n, message_id: id }]);
    assertError(await system.api.delete(pathOf(id)), 404, 'SYS_DLQ_NOT_FOUND');
  });
});
