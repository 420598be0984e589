import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { whyNoKafka } from '../../../../tools/kafka/kafka-for-tests.ts';
import { plainUser, startKafka, type RunningKafka } from '../../../../tools/kafka/start-kafka.ts';
import { newTopic, record } from '../../../../tests/support/broker-conformance/fixtures.ts';
import type { Broker } from '../port.ts';
import { createKafkaBroker } from './kafka-broker.ts';

/** An ACL for every topic changes the rights of everybody, so this needs a Kafka of its own. */
describe('A user who may not write to any topic', { skip: await whyNoKafka() }, () => {
  let kafka: RunningKafka;
  let broker: Broker;
  const topic = newTopic();
  before(async () => {
    kafka = await startKafka();
    const admin = createKafkaBroker({
      brokers: [kafka.brokers],
      securityProtocol: 'PLAINTEXT',
      clientId: 'redrive-test',
    });
    await admin.createTopic(topic, 1);
    await admin.close();
    for (const resource of [['--topic', '*'], ['--cluster']]) {
      const acl = ['--bootstrap-server', kafka.brokers, '--add', ...resource];
      const right = ['--allow-principal', `User:${plainUser.username}`, '--operation', 'Describe'];
      const tool = 'org.apache.kafka.tools.AclCommand';
      const { code, stderr } = await kafka.javaTool(tool, [...acl, ...right]);
      assert.equal(code, 0, stderr);
    }
    broker = createKafkaBroker({
      brokers: [kafka.saslBrokers],
      securityProtocol: 'SASL_PLAINTEXT',
      sasl: { mechanism: plainUser.mechanism, login: plainUser },
      clientId: 'redrive-test',
    });
  });
  after(async () => {
    await broker.close();
    await kafka.stop();
  });

  it('is refused for good, and the records are not to blame', async () => {
    const [result] = await broker.publish([record(topic)], { timeoutMs: 10_000 });
    assert.ok(result?.result === 'failed');
    assert.deepEqual(
      [result.fault, result.retriable, result.code],
      ['topic', false, 'CLUSTER_AUTHORIZATION_FAILED'],
    );
  });

  it('is told before anything is sent', async () => {
    const troubles = await broker.unwritable([topic]);
    const trouble = troubles.get(topic);
    assert.deepEqual([trouble?.problem, trouble?.code], ['denied', 'TOPIC_AUTHORIZATION_FAILED']);
  });
});
