import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runJavaScript } from '../../tools/kafka/java-script.ts';
import { javaTool, plainUser } from '../../tools/kafka/start-kafka.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { arrivedMessages } from '../support/stored-message.ts';
import { needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** Whatever keeps dead letters from being read shows in readiness, in the sources and in the lag. */

type Ready = Readonly<{
  status: string;
  checks: Readonly<{ dlq_ingest: Readonly<{ status: string; message?: string }> }>;
}>;
type Source = Readonly<{
  topic: string;
  position: number;
  end: number;
  stable_end: number;
  lag: number;
  state: string;
  held_back_since: string | null;
}>;

const brokers = process.env['KAFKA_BROKERS'] ?? '';

async function ingestIs(api: ApiClient, status: 'healthy' | 'degraded', message?: RegExp): Promise<void> {
  await eventually(async () => {
    const { body } = await api.get<Ready>('/readyz');
    assert.equal(body.checks.dlq_ingest.status, status, JSON.stringify(body));
    if (message !== undefined) assert.match(body.checks.dlq_ingest.message ?? '', message);
    assert.equal(body.status, status);
  });
}

async function sourceOf(api: ApiClient, topic: string): Promise<Source> {
  const { body } = await api.get<{ sources: readonly Source[] }>('/api/v1/dlq/sources');
  const found = body.sources.find((one) => one.topic === topic);
  assert.ok(found, `no source ${topic}`);
  return found;
}

describe('an open transaction', needsKafka, () => {
  let kafka: TestKafka;
  let system: TestSystem;
  before(async () => {
    kafka = openTestKafka();
    system = await startTestSystem({
      kafka: 'real',
      env: { ...kafka.env, DLQ_OPEN_TRANSACTION_ALERT: '1s' },
    });
  });
  after(async () => {
    await system.drop();
    await kafka.close();
  });

  test('is lag, shows since when it holds reading back, and degrades readiness until it ends', async () => {
    const { api } = system;
    const dlq = await kafka.createTopic('open.dlq.v1');
    await kafka.publish({ topic: dlq, value: 'before' });
    await arrivedMessages(api, dlq, 1);
    await ingestIs(api, 'healthy');

    const id = kafka.name('forgotten');
    const script = (...lines: readonly string[]) =>
      runJavaScript(
        brokers,
        lines.map((line) => line.split(' ')),
      );
    await script(`begin ${id}`, `send ${id} ${dlq} 0 2 20`, `send plain ${dlq} 0 3 20`);
    await ingestIs(api, 'degraded', new RegExp(`an open transaction has blocked ${dlq}/0 since 20`));
    const held = await eventually(async () => {
      const source = await sourceOf(api, dlq);
      assert.deepEqual([source.position, source.stable_end, source.end, source.lag], [1, 1, 6, 5]);
      return source;
    });
    assert.ok(Date.parse(held.held_back_since ?? '') <= Date.now() - 1000);
    await eventually(async () => {
      const { text } = await api.get('/metrics');
      const labels = `\\{topic="${dlq}",partition="0"\\}`;
      assert.match(text, new RegExp(`^dlq_ingest_lag${labels} 5$`, 'm'));
      assert.match(text, new RegExp(`^dlq_ingest_stable_lag${labels} 0$`, 'm'));
      assert.match(text, new RegExp(`^dlq_ingest_held_back_seconds${labels} [1-9]`, 'm'));
    });

    // A producer that begins again under the same id aborts what its predecessor has left open.
    await script(`begin ${id}`, `abort ${id}`);
    await arrivedMessages(api, dlq, 4);
    await ingestIs(api, 'healthy');
    const free = await eventually(async () => {
      const source = await sourceOf(api, dlq);
      assert.deepEqual([source.held_back_since, source.lag, source.position === source.end], [null, 0, true]);
      return source;
    });
    const { body } = await api.get<{ partitions: readonly Record<string, unknown>[] }>(
      '/api/v1/dlq/accounting',
    );
    const account = body.partitions.find((one) => one['topic'] === dlq);
    assert.deepEqual([account?.['stored'], account?.['aborted'], account?.['gaps']], [4, 2, 0]);
    assert.equal(account?.['control'], free.end - 6);
    assert.equal(account?.['balanced'], true);
  });
});

describe('rights', needsKafka, () => {
  let kafka: TestKafka;
  before(() => {
    kafka = openTestKafka();
  });
  after(() => kafka.close());

  const saslBrokers = process.env['TEST_KAFKA_SASL_BROKERS'] ?? '';
  const start = (env: Readonly<Record<string, string>> = {}): Promise<TestSystem> =>
    startTestSystem({
      kafka: 'real',
      env: {
        ...kafka.env,
        KAFKA_BROKERS: saslBrokers,
        KAFKA_SECURITY_PROTOCOL: 'SASL_PLAINTEXT',
        KAFKA_SASL_MECHANISM: plainUser.mechanism,
        KAFKA_SASL_USERNAME: plainUser.username,
        KAFKA_SASL_PASSWORD: plainUser.password,
        ...env,
      },
    });
  const rights = async (...args: readonly string[]): Promise<void> => {
    const { code, stderr } = await javaTool('org.apache.kafka.tools.AclCommand', [
      '--bootstrap-server',
      brokers,
      ...args,
    ]);
    assert.equal(code, 0, stderr);
  };
  const us = ['--allow-principal', `User:${plainUser.username}`];
  const others = ['--allow-principal', 'User:somebody-else'];

  test('without the right to read a topic readiness is degraded, and healthy again with it', async () => {
    const dlq = await kafka.createTopic('denied.dlq.v1');
    await kafka.publish({ topic: dlq, value: '1' });
    const system = await start();
    try {
      await arrivedMessages(system.api, dlq, 1);
      await ingestIs(system.api, 'healthy');

      await rights('--add', '--topic', dlq, ...us, '--operation', 'Describe');
      await ingestIs(
        system.api,
        'degraded',
        new RegExp(`no right to read ${dlq}/0: TOPIC_AUTHORIZATION_FAILED`),
      );
      // A topic that we may not describe is not listed by the cluster: it is not gone for that.
      await rights('--add', '--topic', dlq, ...others, '--operation', 'Read');
      await rights('--remove', '--force', '--topic', dlq, ...us, '--operation', 'Describe');
      await ingestIs(system.api, 'degraded', new RegExp(`no right to describe ${dlq}`));
      assert.notEqual((await sourceOf(system.api, dlq)).state, 'gone');

      await rights('--add', '--topic', dlq, ...us, '--operation', 'Read');
      await kafka.publish({ topic: dlq, value: '2' });
      await arrivedMessages(system.api, dlq, 2);
      await ingestIs(system.api, 'healthy');
    } finally {
      await system.drop();
    }
  });

  test('a topic that is configured by its name and may not be described degrades readiness', async () => {
    const dlq = await kafka.createTopic('hidden.dlq.v1');
    await rights('--add', '--topic', dlq, ...others, '--operation', 'Read');
    const system = await start({ KAFKA_DLQ_TOPIC_PATTERN: dlq });
    try {
      await ingestIs(system.api, 'degraded', new RegExp(`no right to describe ${dlq}`));
    } finally {
      await system.drop();
    }
  });

  test('without the right to ask for the committed offsets nothing is read, and readiness says so', async () => {
    const group = kafka.name('closed-group');
    await rights('--add', '--group', group, ...others, '--operation', 'Read');
    await kafka.createTopic('waiting.dlq.v1');
    const system = await start({
      KAFKA_CONSUMER_GROUP: group,
      KAFKA_DLQ_TOPIC_PATTERN: kafka.name('waiting.dlq.v1'),
    });
    try {
      await ingestIs(system.api, 'degraded', /failed to discover dead-letter topics: .*GROUP_AUTHORIZATION/);
      await rights('--add', '--group', group, ...us, '--operation', 'Read');
      await ingestIs(system.api, 'healthy');
    } finally {
      await system.drop();
    }
  });
});

test('a stopped partition degrades readiness and is named, until a seek', async () => {
  const system = await startTestSystem({ kafka: 'local' });
  const dlq = 'stopped.dlq.v1';
  await system.broker?.createTopic(dlq, 1);
  try {
    await eventually(async () => assert.equal((await sourceOf(system.api, dlq)).state, 'reading'));
    await ingestIs(system.api, 'healthy');
    await system.db.query(sql`
      UPDATE dlq.source_partitions SET stopped = true, last_error = 'the position 9 lies beyond the end',
             lease_owner = NULL, lease_until = NULL, lease_epoch = nextval('platform.lease_epochs')
      WHERE topic = ${dlq}`);
    await ingestIs(system.api, 'degraded', new RegExp(`${dlq}/0 is stopped: the position 9 lies beyond`));
    const { status } = await system.api.post(`/api/v1/dlq/sources/${dlq}/0/seek`, {
      offset: 0,
      reason: 'again',
    });
    assert.equal(status, 200);
    await ingestIs(system.api, 'healthy');
  } finally {
    await system.drop();
  }
});
