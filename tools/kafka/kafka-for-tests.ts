import { javaTool, kafkaAvailability, startKafka, type RunningKafka } from './start-kafka.ts';

/** What a test needs of a Kafka that it shares with others: it must not stop it. */
export type SharedKafka = Pick<RunningKafka, 'brokers' | 'javaTool' | 'stop'> &
  Readonly<Partial<Pick<RunningKafka, 'saslBrokers' | 'sslBrokers' | 'saslSslBrokers'>>>;

/** Why the Kafka tests cannot run here, or false: the value for the `skip` option of a test. */
export async function whyNoKafka(): Promise<string | false> {
  const availability = await kafkaAvailability();
  return availability.available ? false : `no Kafka: ${availability.reason}`;
}

/** The Kafka that the test command started, named by the environment; without one, a Kafka of our own. */
export async function kafkaForTests(): Promise<SharedKafka> {
  const brokers = process.env['KAFKA_BROKERS'];
  if (brokers === undefined || brokers === '') return startKafka();
  const { env } = process;
  return {
    brokers,
    ...listener('saslBrokers', env['TEST_KAFKA_SASL_BROKERS']),
    ...listener('sslBrokers', env['TEST_KAFKA_SSL_BROKERS']),
    ...listener('saslSslBrokers', env['TEST_KAFKA_SASL_SSL_BROKERS']),
    javaTool,
    stop: async () => {},
  };
}

function listener(name: 'saslBrokers' | 'sslBrokers' | 'saslSslBrokers', address: string | undefined) {
  return address === undefined ? {} : { [name]: address };
}
