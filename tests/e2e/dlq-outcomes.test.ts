import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Broker, OutgoingRecord, PublishFault, PublishResult } from '../../src/platform/broker/port.ts';
import { assertError } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import {
  arrivedMessages,
  historyOf,
  messageInStatus,
  showMessage,
  storeMessage,
  type MessageView,
} from '../support/stored-message.ts';

/** What becomes of a message for each way in which a publish can end, also at the worst moment. */

type Tap = (
  records: readonly OutgoingRecord[],
  send: () => Promise<readonly PublishResult[]>,
) => Promise<readonly PublishResult[]>;

const straight: Tap = (_records, send) => send();
const everyOne =
  (result: PublishResult): Tap =>
  async (records) =>
    records.map(() => result);

describe('a publish', () => {
  let system: TestSystem;
  let tap: Tap;
  before(async () => {
    system = await startTestSystem({
      kafka: 'local',
      env: { DLQ_RETRY_LEASE: '3s', KAFKA_PUBLISH_TIMEOUT: '100ms' },
      wrap: {
        broker: (broker): Broker => ({
          ...broker,
          publish: (records, options) => tap(records, () => broker.publish(records, options)),
        }),
      },
    });
    for (const topic of ['orders.v1', 'orders.dlq.v1']) await system.broker?.createTopic(topic, 1);
  });
  after(() => system.drop());
  beforeEach(() => {
    tap = straight;
  });

  const retry = (id: string) =>
    system.api.post<Readonly<{ status: MessageView['status']; published: boolean }>>(
      `/api/v1/dlq/messages/${id}/retry`,
    );
  const storeOne = (): Promise<string> => storeMessage(system.db, { topic: 'orders.v1' });
  const stateOf = async (id: string): Promise<readonly unknown[]> => {
    const { status, retry_count: count, attempt_no: attempt } = await showMessage(system.api, id);
    return [status, count, attempt];
  };

  const staleWrites = async (): Promise<number> => {
    const { text } = await system.api.get('/metrics');
    return Number(/^redrive_stale_writes_total\{slice="dlq"\} (\d+)$/m.exec(text)?.[1] ?? 0);
  };

  const failed = (fault: PublishFault, code: string, retriable = fault === 'cluster'): PublishResult => ({
    result: 'failed',
    fault,
    retriable,
    code,
    message: `the message of ${code}`,
  });

  test('that meets an outage is 503 and costs no attempt, however often', async () => {
    const id = await storeOne();
    tap = everyOne(failed('cluster', 'NOT_LEADER_OR_FOLLOWER'));
    for (const attempt of [1, 2, 3, 4]) {
      const answer = await retry(id);
      const error = assertError(answer, 503, 'SYS_DLQ_BROKER_UNAVAILABLE');
      assert.deepEqual(
        [error.details[0]?.field, error.details[0]?.reason],
        ['broker', 'NOT_LEADER_OR_FOLLOWER'],
      );
      assert.match(error.message, /no attempt was used/);
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
      assert.deepEqual(await stateOf(id), ['PENDING', 0, attempt]);
    }
    const last = (await historyOf(system.api, id)).at(-1);
    assert.deepEqual(
      [last?.event, last?.detail],
      ['released', 'NOT_LEADER_OR_FOLLOWER: the message of NOT_LEADER_OR_FOLLOWER'],
    );
  });

  test('to a topic that is missing or closed to us is 422 and costs no attempt', async () => {
    const id = await storeOne();
    for (const code of [
      'UNKNOWN_TOPIC_OR_PARTITION',
      'TOPIC_AUTHORIZATION_FAILED',
      'CLUSTER_AUTHORIZATION_FAILED',
    ]) {
      tap = everyOne(failed('topic', code));
      const error = assertError(await retry(id), 422, 'SYS_DLQ_PUBLISH_REJECTED');
      assert.equal(error.details[0]?.reason, code);
      assert.equal((await stateOf(id))[1], 0);
      assert.equal((await historyOf(system.api, id)).at(-1)?.event, 'released');
    }
  });

  test('that is refused with a code that may pass is 503 and costs the attempt', async () => {
    const id = await storeOne();
    tap = everyOne(failed('record', 'CORRUPT_MESSAGE', true));
    assertError(await retry(id), 503, 'SYS_DLQ_BROKER_UNAVAILABLE');
    assert.deepEqual(await stateOf(id), ['PENDING', 1, 1]);
  });

  test('that fails for good is 422 with the code of the broker, and DEAD at the last attempt', async () => {
    const id = await storeOne();
    tap = everyOne(failed('record', 'MESSAGE_TOO_LARGE'));
    for (const attempt of [1, 2, 3]) {
      const error = assertError(await retry(id), 422, 'SYS_DLQ_PUBLISH_REJECTED');
      assert.equal(error.details[0]?.reason, 'MESSAGE_TOO_LARGE');
      assert.deepEqual(await stateOf(id), [attempt < 3 ? 'PENDING' : 'DEAD', attempt, attempt]);
    }
  });

  test('without an answer is 503 in doubt, and costs the attempt', async () => {
    const id = await storeOne();
    tap = everyOne({ result: 'unknown', code: 'REQUEST_TIMED_OUT', message: 'no answer' });
    const error = assertError(await retry(id), 503, 'SYS_DLQ_BROKER_UNAVAILABLE');
    assert.equal(error.details[0]?.reason, 'in_doubt');
    assert.deepEqual(await stateOf(id), ['PENDING', 1, 1]);
    assert.equal((await historyOf(system.api, id)).at(-1)?.event, 'publish_unknown');
  });

  test('that was never begun is 503, and the attempt is given back', async () => {
    const id = await storeOne();
    tap = everyOne({ result: 'skipped', behind: 0 });
    assertError(await retry(id), 503, 'SYS_DLQ_BROKER_UNAVAILABLE');
    assert.deepEqual(await stateOf(id), ['PENDING', 0, 1]);
    assert.equal((await historyOf(system.api, id)).at(-1)?.event, 'released');
  });

  test('with an error text that PostgreSQL cannot hold still ends its attempt', async () => {
    const id = await storeOne();
    const message = `a\0b\ud800${'x'.repeat(100_000)}`;
    tap = everyOne({ ...failed('record', 'ODD'), message } as PublishResult);
    assertError(await retry(id), 422);
    assert.deepEqual(await stateOf(id), ['PENDING', 1, 1]);
  });

  test('is covered by a lease: meanwhile nobody retries, marks or deletes the message', async () => {
    const id = await storeOne();
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    tap = async (_records, send) => {
      reached.resolve();
      await released.promise;
      return send();
    };
    const first = retry(id);
    await reached.promise;
    assert.deepEqual(await stateOf(id), ['RETRYING', 1, 1]);
    const path = `/api/v1/dlq/messages/${id}`;
    const second = assertError(await retry(id), 409, 'SYS_DLQ_CONFLICT');
    assert.equal(second.message, 'message is not retryable: status=RETRYING, retry_count=1/3');
    assertError(await system.api.post(`${path}/dead`), 409, 'SYS_DLQ_CONFLICT');
    assertError(await system.api.post(`${path}/reopen`, { reason: 'x' }), 409, 'SYS_DLQ_CONFLICT');
    assertError(await system.api.delete(path), 409, 'SYS_DLQ_CONFLICT');
    released.resolve();
    assert.equal((await first).status, 200);
    assert.deepEqual(await stateOf(id), ['RESOLVED', 1, 1]);
  });

  test('that outlives its lease has failed, and its late answer changes nothing', async () => {
    const id = await storeOne();
    const stale = await staleWrites();
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    tap = async (_records, send) => {
      reached.resolve();
      await released.promise;
      return send();
    };
    const answer = retry(id);
    await reached.promise;
    await messageInStatus(system.api, id, 'PENDING');
    released.resolve();
    const { status, body } = await answer;
    assert.deepEqual([status, body.status], [200, 'PENDING']);
    assert.deepEqual(await stateOf(id), ['PENDING', 1, 1]);
    assert.deepEqual(
      (await historyOf(system.api, id)).map(({ event }) => event),
      ['retry_started', 'lease_expired'],
    );
    assert.equal(await staleWrites(), stale + 1);
  });

  test('whose record comes back before the broker has answered ends as the consumer says', async () => {
    const stale = await staleWrites();
    const letter = { topic: 'orders.dlq.v1', key: null, value: Buffer.from('"fast"'), headers: [] };
    await system.broker?.publish([letter], { timeoutMs: 100 });
    const id = (await arrivedMessages(system.api, 'orders.dlq.v1', 1))[0]?.id ?? '';
    tap = async (records, send) => {
      const results = await send();
      tap = straight;
      const back = records.map((record) => ({ ...record, topic: 'orders.dlq.v1' }));
      await system.broker?.publish(back, { timeoutMs: 100 });
      await messageInStatus(system.api, id, 'PENDING');
      return results;
    };
    const { status, body } = await retry(id);
    assert.deepEqual(
      [status, body],
      [200, { id, status: 'PENDING', message: 'message retry initiated', published: true }],
    );
    assert.deepEqual(
      (await historyOf(system.api, id)).map(({ event, status_to: to }) => `${event} ${to}`),
      ['retry_started RETRYING', 'came_back PENDING', 'published PENDING'],
    );
    assert.deepEqual(await stateOf(id), ['PENDING', 1, 1]);
    assert.equal(await staleWrites(), stale);
  });

  test('of many goes on when the client goes away', async () => {
    const ids = await Promise.all(
      Array.from({ length: 50 }, () => storeMessage(system.db, { topic: 'orders.v1' })),
    );
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    tap = async (_records, send) => {
      reached.resolve();
      await released.promise;
      return send();
    };
    const leaving = new AbortController();
    const url = `${system.url}/api/v1/dlq/orders.v1/retry-all`;
    const call = fetch(url, { method: 'POST', signal: leaving.signal });
    await reached.promise;
    leaving.abort();
    await assert.rejects(call);
    released.resolve();
    await eventually(async () => {
      for (const id of ids) assert.equal((await showMessage(system.api, id)).status, 'RESOLVED');
    });
  });
});
