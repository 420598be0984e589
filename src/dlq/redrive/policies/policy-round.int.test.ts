import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, describe, test } from 'node:test';
import { testAct } from '../../../../tests/support/acts.ts';
import { createTestDatabase, type TestDatabase } from '../../../../tests/support/database.ts';
import {
  clearPolicies,
  makeDue,
  minuteMs,
  retryPolicy,
  schedule,
  storePolicies,
} from '../../../../tests/support/retry-policies.ts';
import { storeMessage, storeRecords } from '../../../../tests/support/stored-message.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import type { RedriveState } from '../../domain/redrive.ts';
import type { PolicyStep } from '../../domain/retry-policy.ts';
import { inScope } from '../planned/plan-scope.ts';
import type { RedriveFilter } from '../planned/redrives-table.ts';
import { commandPolicy } from './command-policy.ts';
import type { RetryPolicy } from './policies-table.ts';
import { takeStep, type RoundResult } from './policy-round.ts';
import { getPolicy, type StoredPolicy } from './read-policies.ts';
import { findDue } from './schedule-messages.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
afterEach(() => clearPolicies(database.db));

describe('a round', () => {
  const results: RoundResult[] = [];
  const stepDeps = (policies: readonly RetryPolicy[], maxMessages = 10) => ({
    db: database.db,
    makeId: () => randomUUID(),
    policies: new Map(policies.map((one) => [one.name, one])),
    maxMessages,
    onRound: (_policy: string, result: RoundResult) => void results.push(result),
  });
  afterEach(() => void results.splice(0));

  const step = (maxMessages?: number): Promise<PolicyStep> =>
    takeStep(stepDeps([retryPolicy()], maxMessages), 'orders');
  const found = (): Promise<StoredPolicy> => getPolicy(database.db, 'orders');

  /** Messages that are due, and the redrive that was made of them. */
  async function made(count = 3, maxMessages?: number): Promise<string> {
    await storeRecords(
      database.db,
      'orders.v1',
      Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: `${i}` })),
    );
    await schedule(database.db, retryPolicy());
    await makeDue(database.db);
    assert.equal(await step(maxMessages), 'make');
    return (await found()).redriveId ?? assert.fail('no redrive');
  }

  async function setRedrive(
    id: string,
    state: RedriveState,
    more: Readonly<{ selected?: number; reason?: string; stoppedBy?: string; receipt?: object }> = {},
  ): Promise<void> {
    const { selected = 3, reason = null, stoppedBy = null, receipt } = more;
    const counts = {
      selected,
      excluded: [{ reason: 'target_missing', count: 3, sample_ids: [] }],
      targets: [],
    };
    await database.db.query(sql`
      UPDATE dlq.redrives
      SET state = ${state}, counts = ${JSON.stringify(counts)}::jsonb, state_reason = ${reason},
          stopped_by = ${stoppedBy}, receipt = ${receipt === undefined ? null : JSON.stringify(receipt)}::jsonb
      WHERE id = ${id}`);
  }

  const stateOf = async (id: string): Promise<string | undefined> => {
    const [row] = await database.db.query<{ state: string }>(
      sql`SELECT state FROM dlq.redrives WHERE id = ${id}`,
    );
    return row?.state;
  };
  const countRedrives = async (): Promise<number> =>
    (await database.db.query(sql`SELECT 1 FROM dlq.redrives`)).length;

  async function countIn(filter: RedriveFilter): Promise<number> {
    const rows = await database.db.query(
      sql`SELECT 1 FROM dlq.dlq_messages t WHERE ${inScope({ kind: 'retry', filter })}`,
    );
    return rows.length;
  }

  /** Milliseconds until the messages are due, from now. */
  async function waits(): Promise<readonly number[]> {
    const rows = await database.db.query<{ ms: number }>(sql`
      SELECT (extract(epoch FROM next_attempt_at - clock_timestamp()) * 1000)::float8 AS ms
      FROM dlq.dlq_messages ORDER BY created_at`);
    return rows.map(({ ms }) => ms);
  }

  const receipt = { sha256: 'x', counts: { selected: 3, published: 3 } };

  test('makes a redrive of what is due, in the name of the policy, and none if nothing is due', async () => {
    await storePolicies(database.db, retryPolicy());
    assert.equal(await step(), 'make');
    assert.equal(await countRedrives(), 0);
    const id = await made();
    const [redrive] = await database.db.query(
      sql`SELECT actor, policy, options FROM dlq.redrives WHERE id = ${id}`,
    );
    assert.deepEqual(redrive, {
      actor: 'policy:orders',
      policy: 'orders',
      options: { rate_per_second: 10, order: 'key', canary: null },
    });
    assert.equal(await step(), 'wait');
    assert.deepEqual(results, ['made']);
  });

  test('two processes that take a step at the same time make one redrive', async () => {
    await storeMessage(database.db, { topic: 'orders.v1' });
    await schedule(database.db, retryPolicy());
    await makeDue(database.db);
    await Promise.all(Array.from({ length: 8 }, () => step()));
    assert.equal(await countRedrives(), 1);
    assert.deepEqual(results, ['made']);
  });

  test('takes at most its number of messages, those that are due first, however many are due at once', async () => {
    await storeRecords(
      database.db,
      'orders.v1',
      Array.from({ length: 25 }, (_, i) => ({ key: null, value: `${i}` })),
    );
    await schedule(database.db, retryPolicy());
    await makeDue(database.db);
    const filter = await findDue(database.db, 'orders', 10);
    assert.ok(filter !== null);
    assert.equal(await countIn(filter), 10);
    const all = await findDue(database.db, 'orders', 100);
    assert.ok(all !== null);
    assert.equal(await countIn(all), 25);
  });

  test('is started when it is planned, and closed when its redrive has ended', async () => {
    const id = await made();
    await setRedrive(id, 'planned');
    assert.equal(await step(), 'start');
    assert.equal(await stateOf(id), 'running');
    assert.equal(await step(), 'wait');
    await setRedrive(id, 'finished', { receipt });
    assert.equal(await step(), 'close');
    const { redriveId, lastRedriveId, lastResult } = await found();
    assert.deepEqual([redriveId, lastRedriveId, lastResult], [null, id, '3 messages: 3 published']);
  });

  test('that could send nothing leaves no redrive, and its messages wait for the delay', async () => {
    const id = await made();
    await setRedrive(id, 'planned', { selected: 0 });
    assert.equal(await step(), 'discard');
    assert.equal(await countRedrives(), 0);
    assert.equal((await found()).lastResult, 'nothing could be sent: 3 target_missing');
    for (const ms of await waits()) assert.ok(ms > 9 * minuteMs && ms <= 10 * minuteMs, `${ms}`);
    assert.deepEqual(results, ['made', 'empty']);
  });

  test('what it has not sent is due again after the delay; what was not part of it is still due', async () => {
    const id = await made(5, 3);
    await setRedrive(id, 'cancelled', { receipt });
    assert.equal(await step(), 'close');
    const due = (await waits()).filter((ms) => ms <= 0);
    assert.equal(due.length, 2);
  });

  test('whose plan failed leaves no redrive, and the next one waits longer after each failure', async () => {
    for (const pauseMs of [minuteMs, 2 * minuteMs]) {
      await database.db.query(sql`
        DELETE FROM dlq.dlq_messages`);
      await database.db.query(sql`UPDATE dlq.retry_policies SET not_before = NULL, round_at = NULL`);
      const id = await made();
      await setRedrive(id, 'failed', { reason: 'the broker cannot be reached' });
      assert.equal(await step(), 'discard');
      assert.equal(await countRedrives(), 0);
      const { notBeforeMs, lastResult } = await found();
      assert.equal(lastResult, 'the broker cannot be reached');
      const leftMs = (notBeforeMs ?? 0) - Date.now();
      assert.ok(Math.abs(leftMs - pauseMs) < 20_000, `${leftMs}`);
      assert.equal(await step(), 'wait');
    }
    assert.equal((await found()).failures, 2);
  });

  test('that an outage has stopped is cancelled, and the policy goes on after a pause', async () => {
    const id = await made();
    await setRedrive(id, 'stopped', { reason: 'orders.v1 accepts no messages', stoppedBy: 'outage' });
    assert.equal(await step(), 'give_up');
    assert.equal(await stateOf(id), 'cancelled');
    assert.equal(await step(), 'wait');
    await setRedrive(id, 'cancelled', { receipt });
    assert.equal(await step(), 'close');
    const { state, failures, notBeforeMs } = await found();
    assert.deepEqual([state, failures], ['active', 1]);
    assert.ok(notBeforeMs !== null);
    assert.equal(await step(), 'wait');
  });

  test('that its canary has stopped disables the policy, and notifies; resuming it cancels the redrive', async () => {
    const id = await made();
    const reason = '3 of 5 messages came back';
    await setRedrive(id, 'stopped', { reason, stoppedBy: 'canary' });
    assert.equal(await step(), 'disable');
    const disabled = await found();
    assert.equal(disabled.state, 'disabled');
    assert.match(disabled.stateReason ?? '', /3 of 5 messages came back/);
    const events = await database.db.query(sql`SELECT kind, subject, item_id FROM platform.notify_events`);
    assert.deepEqual(events, [{ kind: 'policy_disabled', subject: 'orders', item_id: 'orders' }]);
    assert.equal(await step(), 'wait');
    assert.equal(await stateOf(id), 'stopped');

    await commandPolicy(database.db, {
      name: 'orders',
      command: 'resume',
      actor: 'alice',
      reason: 'fixed',
      act: testAct('dlq:redrives:start', 'fixed'),
    });
    assert.equal(await stateOf(id), 'cancelled');
    assert.equal((await found()).state, 'active');
  });

  test('is paused and resumed with its policy', async () => {
    const id = await made();
    await setRedrive(id, 'planned');
    const act = (command: 'pause' | 'resume'): Promise<void> =>
      commandPolicy(database.db, {
        name: 'orders',
        command,
        actor: 'alice',
        reason: 'the partner is down',
        act: testAct('dlq:redrives:pause'),
      });
    await act('pause');
    assert.equal(await step(), 'wait');
    assert.equal(await stateOf(id), 'planned');
    await act('resume');
    assert.equal(await step(), 'start');
    await act('pause');
    assert.equal(await stateOf(id), 'paused');
    await assert.rejects(() => act('pause'), /policy orders is paused: pause needs active/);
    await act('resume');
    assert.equal(await stateOf(id), 'running');
  });

  test('of a policy that was removed ends, and nothing new is started', async () => {
    const id = await made();
    await storePolicies(database.db);
    await setRedrive(id, 'planned');
    assert.equal(await step(), 'withdraw');
    assert.equal(await stateOf(id), 'cancelled');
    await setRedrive(id, 'cancelled', { receipt });
    assert.equal(await step(), 'close');
    assert.equal(await step(), 'wait');
  });
});
