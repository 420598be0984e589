import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';
import type { Broker, OutgoingRecord } from '../../src/platform/broker/port.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { historyOf, showMessage, storeMessage, storeRecords } from '../support/stored-message.ts';

/** Automatic retry: what a policy sends without anybody, and how people pause, resume and see it. */

const root = '/api/v1/dlq/policies';
const topic = 'orders.v1';

const policies = [
  { name: 'soon', topics: ['orders.*'], delay: '1s', rate: 1000 },
  { name: 'gone', topics: ['missing.*'], delay: '1s' },
];

type Policy = Readonly<{
  name: string;
  state: string;
  state_reason: string | null;
  state_actor: string | null;
  topics: readonly string[];
  delay_seconds: number;
  max_attempts: number;
  waiting: number;
  due: number;
  redrive_id: string | null;
  last_redrive_id: string | null;
  last_result: string | null;
}>;

describe('a retry policy', () => {
  let system: TestSystem;
  let sent: OutgoingRecord[] = [];
  before(async () => {
    system = await startTestSystem({
      kafka: 'local',
      env: { DLQ_AUTO_RETRY: JSON.stringify(policies) },
      wrap: {
        broker: (broker): Broker => ({
          ...broker,
          publish(records, options) {
            sent.push(...records);
            return broker.publish(records, options);
          },
        }),
      },
    });
    await system.broker?.createTopic(topic, 2);
  });
  after(() => system.drop());
  beforeEach(() => void (sent = []));
  afterEach(async () => {
    await eventually(async () => assert.equal((await policy()).redrive_id, null));
    await system.db.query(
      sql`TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items`,
    );
  });

  const policy = async (name = 'soon'): Promise<Policy> =>
    (await system.api.get<Policy>(`${root}/${name}`)).body;
  const act = (command: string, name = 'soon') =>
    system.api.post<Policy>(
      `${root}/${name}/${command}`,
      { reason: 'the partner is down' },
      { 'x-actor': 'alice' },
    );
  const ids = async (): Promise<readonly string[]> =>
    (await system.db.query<{ id: string }>(sql`SELECT id FROM dlq.dlq_messages ORDER BY created_at`)).map(
      ({ id }) => id,
    );
  type Listed = Readonly<{
    redrives: readonly Readonly<{ id: string; policy: string | null; actor: string }>[];
    pagination: Readonly<{ total_count: number }>;
  }>;
  const list = async (query: string): Promise<Listed> =>
    (await system.api.get<Listed>(`/api/v1/dlq/redrives?${query}`)).body;
  const store = (count: number): Promise<void> =>
    storeRecords(
      system.db,
      topic,
      Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: `${i}` })),
    );

  test('retries dead letters when their delay is over, on the record, without anybody', async () => {
    await store(20);
    const [first = ''] = await ids();
    await eventually(async () => assert.equal((await showMessage(system.api, first)).status, 'RESOLVED'));
    await eventually(async () => assert.equal((await policy()).last_result, '20 messages: 20 published'));
    assert.equal(sent.length, 20);
    const entries = (await historyOf(system.api, first)).map(({ event, actor }) => [event, actor]);
    assert.deepEqual(entries, [
      ['retry_started', 'policy:soon'],
      ['published', 'policy:soon'],
    ]);
    const { redrives } = await list('policy=soon');
    assert.deepEqual(
      redrives.map(({ policy: name, actor }) => [name, actor]),
      [['soon', 'policy:soon']],
    );
    assert.equal((await policy()).last_redrive_id, redrives[0]?.id);
    const events = await system.db.query(
      sql`SELECT 1 FROM platform.notify_events WHERE kind LIKE 'redrive%'`,
    );
    assert.equal(events.length, 0);
    const metrics = await (await fetch(`${system.url}/metrics`)).text();
    assert.match(metrics, /dlq_policy_rounds_total\{policy="soon",result="finished"\} [1-9]/);
  });

  test('its redrives can be told from those that people make, whatever their actor', async () => {
    await storeMessage(system.db, { topic: 'elsewhere.v1' });
    const { body } = await system.api.post<Readonly<{ id: string }>>(
      '/api/v1/dlq/redrives',
      { filter: { topic: 'elsewhere.v1' }, reason: 'tried' },
      { 'x-actor': 'policy:soon' },
    );
    await store(1);
    await eventually(async () => assert.equal((await list('automatic=true')).pagination.total_count, 1));
    const people = await list('automatic=false');
    assert.deepEqual(
      people.redrives.map(({ id, policy: name, actor }) => [id, name, actor]),
      [[body.id, null, 'policy:soon']],
    );
    assert.equal((await list('')).pagination.total_count, 2);
    assert.equal((await list('policy=other')).pagination.total_count, 0);
  });

  test('sends nothing while it is paused, and what has become due when it is resumed', async () => {
    const paused = await act('pause');
    assert.equal(paused.status, 200, paused.text);
    assert.deepEqual(
      [paused.body.state, paused.body.state_actor, paused.body.state_reason],
      ['paused', 'alice', 'the partner is down'],
    );
    await store(3);
    await eventually(async () => assert.equal((await policy()).due, 3));
    const [id = ''] = await ids();
    const { body } = await system.api.get<Readonly<{ next_attempt_at: string; retry_policy: string }>>(
      `/api/v1/dlq/messages/${id}`,
    );
    assert.equal(body.retry_policy, 'soon');
    assert.match(body.next_attempt_at, /^20/);
    assert.equal((await list('automatic=true')).pagination.total_count, 0);
    assert.equal((await act('pause')).status, 409);

    assert.equal((await act('resume')).body.state, 'active');
    await eventually(() => assert.equal(sent.length, 3));
  });

  test('what cannot be sent makes no redrive, and the policy says why', async () => {
    const id = await storeMessage(system.db, { topic: 'missing.v1' });
    await eventually(async () =>
      assert.equal((await policy('gone')).last_result, 'nothing could be sent: 1 target_missing'),
    );
    assert.equal((await list('policy=gone')).pagination.total_count, 0);
    const { status, retry_count: count } = await showMessage(system.api, id);
    assert.deepEqual([status, count], ['PENDING', 0]);
  });

  test('a disabled policy degrades readiness until a person resumes it', async () => {
    type Ready = Readonly<{
      checks: Readonly<Record<string, Readonly<{ status: string; message?: string }>>>;
    }>;
    const check = async () => (await system.api.get<Ready>('/readyz')).body.checks['dlq_policies'];
    assert.equal((await check())?.status, 'healthy');
    await system.db.query(sql`
      UPDATE dlq.retry_policies SET state = 'disabled', state_reason = '3 of 5 came back' WHERE name = 'soon'`);
    await eventually(async () =>
      assert.deepEqual(await check(), {
        status: 'degraded',
        message: 'retry policy soon is disabled: 3 of 5 came back',
      }),
    );
    assert.equal((await act('resume')).body.state, 'active');
    await eventually(async () => assert.equal((await check())?.status, 'healthy'));
  });

  test('refuses unknown policies, missing reasons and unknown fields', async () => {
    assertError(await act('pause', 'nobody'), 404, 'SYS_DLQ_NOT_FOUND');
    assertError(await system.api.get(`${root}/nobody`), 404, 'SYS_DLQ_NOT_FOUND');
    for (const body of [{}, { reason: ' ' }, { reason: 'x', force: true }, null])
      assertError(await system.api.post(`${root}/soon/pause`, body), 400, 'SYS_DLQ_VALIDATION_ERROR');
    assertError(
      await system.api.get('/api/v1/dlq/redrives?automatic=perhaps'),
      400,
      'SYS_DLQ_VALIDATION_ERROR',
    );
    assert.equal((await policy()).state, 'active');
  });

  test('is listed, shown, paused and resumed on the command line', async () => {
    const run = async (...words: readonly string[]): Promise<string> => {
      let out = '';
      const write = (data: string | Uint8Array): void => void (out += data.toString());
      const code = await runCli(['dlq', ...words, '--url', system.url], {
        env: {},
        stdin: new PassThrough(),
        stdout: { write },
        stderr: { write },
      });
      assert.equal(code, 0, out);
      return out;
    };
    assert.match(await run('policies', 'list'), /POLICY +STATE[^]*soon +active[^]*gone +active/);
    assert.match(
      await run('policies', 'show', 'soon'),
      /topics +orders\.\*[^]*delay +1 s, x 2[^]*max attempts +3/,
    );
    assert.match(await run('policies', 'pause', 'soon', '--reason', 'a test'), /soon paused/);
    assert.match(await run('policies', 'show', 'soon'), /state reason +a test/);
    assert.match(await run('policies', 'resume', 'soon', '--reason', 'a test'), /soon active/);
    assert.match(await run('redrive', 'list', '--automatic', 'false'), /no redrives/);
  });
});
