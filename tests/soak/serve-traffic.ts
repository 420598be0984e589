import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createKafkaBroker } from '../../src/platform/broker/kafka/kafka-broker.ts';
import { sleep } from '../../src/kernel/clock.ts';
import { startKafka } from '../../tools/kafka/start-kafka.ts';
import { postJson } from './post-json.ts';

/** A steady load on a server of its own kind: dead letters on a real Kafka, orders, and jobs that are pulled. */
export type ServeTraffic = Readonly<{
  /** What the server needs to know. */
  env: Readonly<Record<string, string>>;
  /** Rejects when the load is refused. */
  run(): Promise<void>;
  end(): Promise<void>;
  /** After the server has stopped. */
  close(): Promise<void>;
}>;

const turnMs = 500;
const perTurn = 20;
/** Dead letters are retried after so many turns; nobody consumes the topic, so they stay resolved. */
const retryEvery = 20;

export async function startServeTraffic(url: string): Promise<ServeTraffic> {
  const kafka = await startKafka();
  const broker = createKafkaBroker({
    brokers: kafka.brokers.split(','),
    clientId: 'soak',
    securityProtocol: 'PLAINTEXT',
  });
  for (const topic of ['soak.v1', 'soak.dlq.v1']) await broker.createTopic(topic, 3);
  const partner = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
  });
  partner.listen(0, '127.0.0.1');
  await once(partner, 'listening');
  const partnerUrl = `http://127.0.0.1:${(partner.address() as AddressInfo).port}/`;
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();

  const takeTurn = async (turn: number): Promise<void> => {
    const numbers = Array.from({ length: perTurn }, (_, n) => turn * perTurn + n);
    await broker.publish(numbers.map(deadLetter), { timeoutMs: 5000 });
    await Promise.all(numbers.map((n) => placeOrder(url, n)));
    await Promise.all(numbers.map((n) => post(`${url}/api/v1/jobs`, { queue: 'soak', payload: { n } })));
    await workOnJobs(url);
    if (turn % retryEvery === 0) await post(`${url}/api/v1/dlq/soak.v1/retry-all`, {});
  };

  const takeTurns = async (): Promise<void> => {
    for (let turn = 1; !stopping.signal.aborted; turn += 1) {
      await takeTurn(turn);
      await sleep(turnMs, stopping.signal);
    }
  };

  return {
    env: {
      KAFKA_BROKERS: kafka.brokers,
      KAFKA_DISCOVERY_INTERVAL: '1s',
      OUTBOX_DESTINATIONS: JSON.stringify({ partner: { type: 'http', url: partnerUrl } }),
    },
    run() {
      running = takeTurns();
      return running;
    },
    async end() {
      stopping.abort();
      await running.catch(() => {});
    },
    async close() {
      partner.close();
      partner.closeAllConnections();
      await broker.close();
      await kafka.stop();
    },
  };
}

function deadLetter(n: number) {
  return {
    topic: 'soak.dlq.v1',
    key: Buffer.from(`customer-${n % 997}`),
    value: Buffer.from(JSON.stringify({ n, note: 'x'.repeat(400) })),
    headers: [
      { key: Buffer.from('error'), value: Buffer.from('TimeoutError: no answer within 5000 ms') },
      { key: Buffer.from('original_topic'), value: Buffer.from('soak.v1') },
    ],
  };
}

const run = Date.now();

async function placeOrder(url: string, n: number): Promise<void> {
  const key = `soak-${run}-${n}`;
  await post(
    `${url}/api/v1/outbox/orders`,
    { destination: 'partner', idempotency_key: key, request: { n } },
    key,
  );
}

type Claimed = Readonly<{ jobs: readonly Readonly<{ job_id: string; epoch: number }>[] }>;

async function workOnJobs(url: string): Promise<void> {
  const claim = { worker: `soak-${run}`, limit: perTurn };
  const { jobs = [] } = (await post(`${url}/api/v1/jobs/queues/soak/claim`, claim)) as Partial<Claimed>;
  await Promise.all(
    jobs.map(({ job_id, epoch }) => post(`${url}/api/v1/jobs/${job_id}/complete`, { epoch, result: {} })),
  );
}

/** A busy machine may be late; a load that is refused would show nothing, so it ends the run. */
async function post(url: string, body: object, key?: string): Promise<unknown> {
  const told = await postJson(url, body, key);
  if (told === null || told.status === 503) return {};
  if (told.status > 299) throw new Error(`${url} answered ${JSON.stringify(told)}`);
  return told.body;
}
