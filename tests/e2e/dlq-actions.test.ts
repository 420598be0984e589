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
    ]);
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

  test('it can be neither retried, nor marked dead, nor deleted', async () => {
    const id = await storeArchived();
    const retried = assertError(await system.api.post(pathOf(id, '/retry')), 409, 'SYS_DLQ_CONFLICT');
    assert.equal(retried.message, 'message is not retryable: status=RESOLVED, retry_count=2/3, archived');
    const dead = assertError(await system.api.post(pathOf(id, '/dead')), 409, 'SYS_DLQ_CONFLICT');
    assert.equal(dead.message, 'message cannot be marked dead: archived, reopen it first');
    const deleted = assertError(await system.api.delete(pathOf(id)), 409, 'SYS_DLQ_CONFLICT');
    assert.equal(deleted.message, 'message cannot be deleted: archived, reopen it first');
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
