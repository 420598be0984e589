import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { inspect } from 'node:util';
import { newTopic, readAll, record } from '../../tests/support/broker-conformance/fixtures.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { loopbackTls } from '../../tests/support/loopback-tls.ts';
import { kafkaForTests, whyNoKafka, type SharedKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { loadConfig } from '../config/config.ts';
import type { Broker } from '../platform/broker/port.ts';
import { createBroker } from './create-broker.ts';

/** From the files that an agent mounts to a real broker with TLS and SCRAM. */
describe('Kafka by secret files', { skip: await whyNoKafka() }, () => {
  let kafka: SharedKafka;
  let folder: string;
  before(async () => {
    kafka = await kafkaForTests();
    folder = await mkdtemp(join(tmpdir(), 'redrive-kafka-'));
    await writeFile(join(folder, 'ca.pem'), loopbackTls.cert);
  });
  after(async () => {
    await kafka.stop();
    await rm(folder, { recursive: true });
  });

  const passwordOf = (user: string): string => `secret of ${user}`;

  async function alter(user: string, ...change: readonly string[]): Promise<void> {
    const args = ['--bootstrap-server', kafka.brokers, '--alter', '--entity-type', 'users'];
    const { code, stderr } = await kafka.javaTool('kafka.admin.ConfigCommand', [
      ...args,
      '--entity-name',
      user,
      ...change,
    ]);
    assert.equal(code, 0, stderr);
  }

  /** As agents do: a new file that takes the place of the old one at once. */
  async function mount(user: string): Promise<void> {
    const next = join(folder, '.next');
    await writeFile(next, JSON.stringify({ username: user, password: passwordOf(user) }), { mode: 0o600 });
    await rename(next, join(folder, 'kafka-sasl.json'));
  }

  function openBroker(brokers = kafka.saslSslBrokers ?? ''): Broker {
    const config = loadConfig({
      env: {
        KAFKA_BROKERS: brokers,
        KAFKA_SECURITY_PROTOCOL: 'SASL_SSL',
        KAFKA_TLS_CA: join(folder, 'ca.pem'),
      },
      secretsDir: folder,
    });
    const broker = createBroker(config.kafka);
    assert.ok(broker);
    return broker;
  }

  it('changes its user under load when the file changes, and no publish fails', async () => {
    const [first, second] = [newTopic(), newTopic()];
    for (const user of [first, second])
      await alter(user, '--add-config', `SCRAM-SHA-512=[password=${passwordOf(user)}]`);
    await mount(first);
    const broker = openBroker();
    const topic = newTopic();
    await eventually(() => broker.createTopic(topic, 1));
    let acked = 0;
    const stop = new AbortController();
    const load = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        const [result] = await broker.publish([record(topic)], { timeoutMs: 10_000 });
        assert.equal(result?.result, 'acked', inspect(result));
        acked += 1;
      }
    };
    const loads = [load(), load(), load()];
    await mount(second);
    await alter(first, '--delete-config', 'SCRAM-SHA-512');
    const before = acked;
    // Two rounds in which the broker asks every connection to authenticate again.
    await new Promise((done) => setTimeout(done, 4500));
    stop.abort();
    await Promise.all(loads);
    assert.ok(acked > before, 'it publishes as the second user');
    assert.equal((await readAll(broker, topic)).length, acked);
    await broker.close();
  });

  it('refuses a broker that has a trusted certificate of another host', async () => {
    const [host = '', port = ''] = (kafka.saslSslBrokers ?? '').split(':');
    const relay = createServer((socket) => {
      const upstream = connect(Number(port), host);
      socket.pipe(upstream).pipe(socket);
      for (const end of [socket, upstream]) end.on('error', () => socket.destroy());
    });
    relay.listen(0, '127.0.0.2');
    await once(relay, 'listening');
    await mount('nobody');
    const broker = openBroker(`127.0.0.2:${(relay.address() as AddressInfo).port}`);
    try {
      await assert.rejects(broker.clusterId(), { code: 'SYS_BROKER_TLS_FAILED' });
    } finally {
      await broker.close();
      relay.close();
    }
  });
});
