import { readLogin } from '../config/layers/secret.ts';
import { contentsOf } from '../config/layers/tls-files.ts';
import type { Config } from '../config/config.ts';
import type { KafkaConfig } from '../config/resolve/resolve-kafka.ts';
import { createClientToken } from '../platform/broker/kafka/client-token.ts';
import { createKafkaBroker } from '../platform/broker/kafka/kafka-broker.ts';
import type { SaslCredentials } from '../platform/broker/kafka/sasl.ts';
import { createLocalBroker } from '../platform/broker/local/local-broker.ts';
import type { Broker } from '../platform/broker/port.ts';

/** Null if Kafka is disabled. Credentials and certificates in files are read for every connection. */
export function createBroker(kafka: KafkaConfig): Broker | null {
  if (!kafka.enabled) return null;
  if (kafka.local) return createLocalBroker();
  const { sasl, tls } = kafka;
  return createKafkaBroker({
    brokers: kafka.brokers,
    clientId: 'redrive',
    securityProtocol: kafka.securityProtocol,
    ...(sasl === undefined ? {} : { sasl: credentialsOf(sasl) }),
    ...(tls === undefined ? {} : { tls: contentsOf(tls) }),
  });
}

function credentialsOf(sasl: NonNullable<KafkaConfig['sasl']>): SaslCredentials {
  const login = async () => {
    const { user, password } = await readLogin(sasl);
    return { username: user, password };
  };
  const { mechanism } = sasl;
  if (mechanism !== 'OAUTHBEARER') return { mechanism, login };
  return { mechanism, token: createClientToken({ url: sasl.tokenUrl, scope: sasl.scope, client: login }) };
}

export function kafkaName(kafka: KafkaConfig): string {
  if (!kafka.enabled) return 'off';
  return kafka.local ? 'local, in this process' : kafka.brokers.join(',');
}

export async function openBroker(
  { kafka, saga }: Config,
  wrap: (broker: Broker) => Broker = (broker) => broker,
): Promise<Broker | null> {
  const connected = createBroker(kafka);
  const broker = connected === null ? null : wrap(connected);
  // The local broker does not create topics on demand.
  if (kafka.local) await broker?.createTopic(saga.eventsTopic, 3);
  return broker;
}
