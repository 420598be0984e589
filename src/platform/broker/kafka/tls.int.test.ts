import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { after, before, describe, it } from 'node:test';
import { kafkaForTests, whyNoKafka, type SharedKafka } from '../../../../tools/kafka/kafka-for-tests.ts';
import { plainUser, scramUser } from '../../../../tools/kafka/start-kafka.ts';
import { newTopic, readAll, record } from '../../../../tests/support/broker-conformance/fixtures.ts';
import { loopbackTls } from '../../../../tests/support/loopback-tls.ts';
import { eventually } from '../../../../tests/support/eventually.ts';
import { createClientToken } from './client-token.ts';
import { createKafkaBroker, type KafkaBrokerOptions } from './kafka-broker.ts';

const soon = { timeoutMs: 10_000 } as const;
const ca = loopbackTls.cert;

describe('Kafka over TLS', { skip: await whyNoKafka() }, () => {
  let kafka: SharedKafka;
  before(async () => {
    kafka = await kafkaForTests();
  });
  after(() => kafka.stop());

  const over = (
    securityProtocol: 'SSL' | 'SASL_SSL',
    options: Pick<KafkaBrokerOptions, 'tls' | 'sasl'>,
  ): KafkaBrokerOptions => {
    const brokers = securityProtocol === 'SSL' ? kafka.sslBrokers : kafka.saslSslBrokers;
    assert.ok(brokers, 'the TLS listeners are needed');
    return { brokers: [brokers], securityProtocol, clientId: 'redrive-test', ...options };
  };

  async function writesAndReads(options: KafkaBrokerOptions): Promise<void> {
    const broker = createKafkaBroker(options);
    try {
      const topic = newTopic();
      await broker.createTopic(topic, 1);
      const [result] = await broker.publish([record(topic)], soon);
      assert.equal(result?.result, 'acked');
      assert.equal((await readAll(broker, topic)).length, 1);
    } finally {
      await broker.close();
    }
  }

  async function isRefused(options: KafkaBrokerOptions, code: string): Promise<void> {
    const broker = createKafkaBroker(options);
    try {
      await assert.rejects(broker.clusterId(), { code });
      const [result] = await broker.publish([record('t')], soon);
      assert.ok(result?.result === 'failed' && result.retriable, 'nothing was sent');
    } finally {
      await broker.close();
    }
  }

  it('writes and reads with a certificate of its own', () =>
    writesAndReads(over('SSL', { tls: { ca, cert: loopbackTls.cert, key: loopbackTls.key } })));

  it('is refused without a certificate of its own', () =>
    isRefused(over('SSL', { tls: { ca } }), 'SYS_BROKER_UNAVAILABLE'));

  it('refuses a broker whose certificate no authority that it trusts has signed', () =>
    isRefused(
      over('SSL', { tls: { cert: loopbackTls.cert, key: loopbackTls.key } }),
      'SYS_BROKER_TLS_FAILED',
    ));

  it('uses a renewed certificate for the next connection', async () => {
    let cert: string | undefined;
    const tls = {
      ca,
      get cert() {
        return cert;
      },
      get key() {
        return cert === undefined ? undefined : loopbackTls.key;
      },
    };
    const broker = createKafkaBroker(over('SSL', { tls }));
    await assert.rejects(broker.clusterId(), { code: 'SYS_BROKER_UNAVAILABLE' });
    cert = loopbackTls.cert;
    assert.notEqual(await broker.clusterId(), '');
    await broker.close();
  });

  for (const { mechanism, ...login } of [plainUser, scramUser])
    it(`writes and reads as a user of SASL ${mechanism}`, () =>
      writesAndReads(over('SASL_SSL', { tls: { ca }, sasl: { mechanism, login } })));

  it('changes its user under load without a failed record', async () => {
    const config = 'kafka.admin.ConfigCommand';
    const alter = async (user: string, ...change: readonly string[]): Promise<void> => {
      const args = ['--bootstrap-server', kafka.brokers, '--alter', '--entity-type', 'users'];
      const { code, stderr } = await kafka.javaTool(config, [...args, '--entity-name', user, ...change]);
      assert.equal(code, 0, stderr);
    };
    const passwordOf = (user: string): string => `secret of ${user}`;
    const create = (user: string) =>
      alter(user, '--add-config', `SCRAM-SHA-512=[password=${passwordOf(user)}]`);
    const [first, second] = [newTopic(), newTopic()];
    await Promise.all([create(first), create(second)]);

    // The listener asks connections of this mechanism to authenticate again every two seconds.
    let user = first;
    const login = async () => ({ username: user, password: passwordOf(user) });
    const broker = createKafkaBroker(
      over('SASL_SSL', { tls: { ca }, sasl: { mechanism: 'SCRAM-SHA-512', login } }),
    );
    const topic = newTopic();
    // The broker that answers the command knows a new user a moment before it lets that user in.
    await eventually(() => broker.createTopic(topic, 1));
    let acked = 0;
    const publishUntil = async (condition: () => boolean): Promise<void> => {
      const giveUpAt = performance.now() + 60_000;
      while (!condition() && performance.now() < giveUpAt) {
        const [result] = await broker.publish([record(topic)], soon);
        assert.equal(result?.result, 'acked', inspect(result));
        acked += 1;
      }
    };
    await publishUntil(() => acked >= 20);
    user = second;
    let deleted = false;
    const deleting = (async () => {
      await alter(first, '--delete-config', 'SCRAM-SHA-512');
      deleted = true;
    })();
    await publishUntil(() => deleted);
    await deleting;
    const afterDeletion = performance.now();
    // Two rounds of authentication.
    await publishUntil(() => performance.now() > afterDeletion + 4500);
    assert.equal((await readAll(broker, topic)).length, acked);
    await broker.close();
  });

  it('sends no password to a broker that it does not trust', () => {
    const { mechanism, ...login } = plainUser;
    const read = () => Promise.reject(new Error('the password was asked for'));
    assert.ok(login.password.length > 0);
    return isRefused(over('SASL_SSL', { sasl: { mechanism, login: read } }), 'SYS_BROKER_TLS_FAILED');
  });

  it('writes and reads with a token that it gets from a token endpoint', async (t) => {
    let tokens = 0;
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      assert.equal(await text(request), 'grant_type=client_credentials');
      tokens += 1;
      response.end(JSON.stringify({ access_token: unsignedToken(3600), expires_in: 3600 }));
    };
    const endpoint = createServer((request, response) => void answer(request, response));
    endpoint.listen(0, '127.0.0.1');
    await once(endpoint, 'listening');
    t.after(() => endpoint.close());
    const token = createClientToken({
      url: `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/token`,
      scope: undefined,
      client: async () => ({ username: 'redrive', password: 'secret' }),
    });
    await writesAndReads(over('SASL_SSL', { tls: { ca }, sasl: { mechanism: 'OAUTHBEARER', token } }));
    assert.equal(tokens, 1);
  });

  it('names a token that the broker refuses as what it is', () =>
    isRefused(
      over('SASL_SSL', {
        tls: { ca },
        sasl: { mechanism: 'OAUTHBEARER', token: async () => unsignedToken(-3600) },
      }),
      'SYS_BROKER_AUTHENTICATION_FAILED',
    ));
});

/** The broker of the tests accepts tokens that nobody has signed. */
function unsignedToken(seconds: number): string {
  const now = Math.floor(Date.now() / 1000);
  const parts = [{ alg: 'none' }, { sub: 'redrive', iat: now - 7200, exp: now + seconds }];
  return `${parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.`;
}
