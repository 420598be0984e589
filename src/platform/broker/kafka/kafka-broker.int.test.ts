import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { kafkaForTests, whyNoKafka, type SharedKafka } from '../../../../tools/kafka/kafka-for-tests.ts';
import { plainUser, scramUser } from '../../../../tools/kafka/start-kafka.ts';
import { testBrokerConformance } from '../../../../tests/support/broker-conformance.ts';
import {
  batchOf,
  failureOf,
  limits,
  newTopic,
  partitionsOf,
  positionAt,
  readAll,
  record,
} from '../../../../tests/support/broker-conformance/fixtures.ts';
import type { Broker, PublishResult } from '../port.ts';
import { createKafkaBroker } from './kafka-broker.ts';
import type { SaslCredentials } from './sasl.ts';

const soon = { timeoutMs: 10_000 } as const;
const plaintext = { securityProtocol: 'PLAINTEXT', clientId: 'redrive-test' } as const;

type User = Readonly<{ mechanism: 'PLAIN' | 'SCRAM-SHA-512'; username: string; password: string }>;
const saslOf = ({ mechanism, ...login }: User) => ({ mechanism, login }) as const;

function assertRefusedCredentials(result: PublishResult): void {
  assert.ok(result.result === 'failed');
  assert.deepEqual([result.retriable, result.code], [true, 'AUTHENTICATION_FAILED']);
}

describe('Kafka', { skip: await whyNoKafka() }, () => {
  let kafka: SharedKafka;
  before(async () => {
    kafka = await kafkaForTests();
  });
  after(() => kafka.stop());

  const open = (): Broker => createKafkaBroker({ brokers: kafka.brokers.split(','), ...plaintext });
  const openSasl = (sasl: SaslCredentials): Broker => {
    assert.ok(kafka.saslBrokers, 'the SASL listener is needed');
    return createKafkaBroker({
      brokers: [kafka.saslBrokers],
      securityProtocol: 'SASL_PLAINTEXT',
      sasl,
      clientId: 'redrive-test',
    });
  };

  testBrokerConformance('Kafka', async () => open());

  for (const user of [plainUser, scramUser]) {
    it(`writes and reads as a user of SASL ${user.mechanism}`, async () => {
      const broker = openSasl(saslOf(user));
      const topic = newTopic();
      await broker.createTopic(topic, 1);
      const [result] = await broker.publish([record(topic)], soon);
      assert.equal(result?.result, 'acked');
      assert.equal((await readAll(broker, topic)).length, 1);
      await broker.close();
    });

    it(`names a wrong password of SASL ${user.mechanism} as what it is`, async () => {
      const broker = openSasl(saslOf({ ...user, password: 'wrong' }));
      await assert.rejects(broker.clusterId(), { code: 'SYS_BROKER_AUTHENTICATION_FAILED' });
      const position = { topic: 't', topicId: 'i', partition: 0, offset: 0n };
      await assert.rejects(broker.fetch([position], limits), { code: 'SYS_BROKER_AUTHENTICATION_FAILED' });
      await broker.close();
    });

    it(`lets every record be tried again after a wrong password of SASL ${user.mechanism}`, async (context) => {
      const broker = openSasl(saslOf({ ...user, password: 'wrong' }));
      context.after(() => broker.close());
      const results = await broker.publish([record('t'), record('t'), record('u')], soon);
      assert.equal(results.length, 3);
      for (const result of results) assertRefusedCredentials(result);
    });
  }

  it('lets every record be tried again when the password changes before the first is sent', async (context) => {
    let password: string = scramUser.password;
    const broker = openSasl({ ...saslOf(scramUser), login: async () => ({ ...scramUser, password }) });
    context.after(() => broker.close());
    const topic = newTopic();
    await broker.createTopic(topic, 1);
    password = 'wrong';
    const results = await broker.publish([record(topic), record(topic)], soon);
    assert.equal(results.length, 2);
    for (const result of results) assertRefusedCredentials(result);
    password = scramUser.password;
    const [acked] = await broker.publish([record(topic)], soon);
    assert.deepEqual(acked, { result: 'acked', partition: 0, offset: 0n });
  });

  it('asks for the password at each connection when it is a function', async () => {
    let password = 'wrong';
    const broker = openSasl({ ...saslOf(scramUser), login: async () => ({ ...scramUser, password }) });
    await assert.rejects(broker.clusterId(), { code: 'SYS_BROKER_AUTHENTICATION_FAILED' });
    password = scramUser.password;
    assert.notEqual(await broker.clusterId(), '');
    await broker.close();
  });

  it('says that a broker is away when it is, and which', async () => {
    const broker = createKafkaBroker({ brokers: ['127.0.0.1:1'], ...plaintext });
    await assert.rejects(broker.clusterId(), { code: 'SYS_BROKER_UNAVAILABLE', message: /127\.0\.0\.1:1/ });
    const [result] = await broker.publish([record('t')], soon);
    assert.ok(result?.result === 'failed' && result.retriable);
    assert.equal(result.code, 'UNAVAILABLE');
    await broker.close();
  });

  it('finds the cluster through the one bootstrap broker that lives', async () => {
    const broker = createKafkaBroker({ brokers: ['127.0.0.1:1', ...kafka.brokers.split(',')], ...plaintext });
    assert.notEqual(await broker.clusterId(), '');
    await broker.close();
  });

  it('reports a missing right for its partition alone', async () => {
    const admin = open();
    const [denied, allowed] = [newTopic(), newTopic()];
    for (const topic of [denied, allowed]) await admin.createTopic(topic, 1);
    await admin.publish([record(denied), record(allowed)], soon);
    const acl = ['--bootstrap-server', kafka.brokers, '--add', '--topic', denied];
    const rights = ['--allow-principal', `User:${plainUser.username}`, '--operation', 'Describe'];
    const { code, stderr } = await kafka.javaTool('org.apache.kafka.tools.AclCommand', [...acl, ...rights]);
    assert.equal(code, 0, stderr);

    const broker = openSasl(saslOf(plainUser));
    const [first] = await partitionsOf(broker, denied);
    const [second] = await partitionsOf(broker, allowed);
    assert.ok(first && second);
    const results = await broker.fetch([positionAt(first, 0n), positionAt(second, 0n)], limits);
    assert.equal(failureOf(results[0]).error.kind, 'denied');
    assert.equal(batchOf(results[1]).records.length, 1);
    const [refused, written] = await broker.publish([record(denied), record(allowed)], soon);
    assert.deepEqual(
      [...(await broker.unwritable([denied, allowed]))].map(([topic, { problem }]) => [topic, problem]),
      [[denied, 'denied']],
    );
    assert.ok(refused?.result === 'failed' && !refused.retriable && refused.fault === 'topic');
    assert.equal(refused.code, 'TOPIC_AUTHORIZATION_FAILED');
    assert.equal(written?.result, 'acked');
    for (const one of [admin, broker]) await one.close();
  });
});
