import { readFileSync } from 'node:fs';
import { readLogin } from '../config/layers/secret.ts';
import type { KafkaConfig } from '../config/resolve/resolve-kafka.ts';
import { createKafkaBroker } from '../platform/broker/kafka/kafka-broker.ts';
import { createLocalBroker } from '../platform/broker/local/local-broker.ts';
import type { Broker } from '../platform/broker/port.ts';

/** Null if Kafka is disabled. Credentials in files are read at every connection. */
export function createBroker(kafka: KafkaConfig): Broker | null {
  if (!kafka.enabled) return null;
  if (kafka.local) return createLocalBroker();
  const { sasl, tls } = kafka;
  const file = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : readFileSync(path, 'utf8');
  return createKafkaBroker({
    brokers: kafka.brokers,
    clientId: 'redrive',
    securityProtocol: kafka.securityProtocol,
    ...(sasl === undefined
      ? {}
      : {
          sasl: {
            mechanism: sasl.mechanism,
            username: async () => (await readLogin(sasl)).user,
            password: async () => (await readLogin(sasl)).password,
          },
        }),
    ...(tls === undefined ? {} : { tls: { ca: file(tls.ca), cert: file(tls.cert), key: file(tls.key) } }),
  });
}

export function kafkaName(kafka: KafkaConfig): string {
  if (!kafka.enabled) return 'off';
  return kafka.local ? 'local, in this process' : kafka.brokers.join(',');
}
