import { javaTool, kafkaAvailability, startKafka, type RunningKafka } from './start-kafka.ts';

/** What a test needs of a Kafka that it shares with others: it must not stop it. */
export type SharedKafka = Pick<RunningKafka, 'brokers' | 'javaTool' | 'stop'> &
  Readonly<{ saslBrokers: string | undefined }>;

/** Why the Kafka tests cannot run here, or false: the value for the `skip` option of a test. */
export async function whyNoKafka(): Promise<string | false> {
  const availability = await kafkaAvailability();
  return availability.available ? false : `no Kafka: ${availability.reason}`;
}

/** The Kafka that the test command started, named by the environment; without one, a Kafka of our own. */
export async function kafkaForTests(): Promise<SharedKafka> {
  const brokers = process.env['KAFKA_BROKERS'];
  if (brokers === undefined || brokers === '') return startKafka();
  return { brokers, saslBrokers: process.env['TEST_KAFKA_SASL_BROKERS'], javaTool, stop: async () => {} };
}
