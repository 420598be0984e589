import { sleep as wait } from '../../src/kernel/clock.ts';
import type { Broker, BrokerRecord } from '../../src/platform/broker/port.ts';
import { chanceFrom, type Chance } from './chance.ts';
import { collectPayment, paymentFor, type Payment } from './collect-payment.ts';
import { consume, type Consumer } from './consume.ts';
import { attemptOf, plainDeadLetter, springDeadLetter } from './dead-letter.ts';
import { decodeOrder } from './order.ts';
import { placeOrders } from './place-orders.ts';
import { publish } from './publish.ts';
import { carriersWithBug, carriersWithoutBug, shipOrder, type Carriers } from './ship-order.ts';

export type OrdersPipelineOptions = Readonly<{
  broker: Broker;
  /** Ends everything; the pipeline's promise resolves when all of it has stopped. */
  signal: AbortSignal;
  /** Runs with the same seed have the same orders and the same failures. */
  seed: string;
  /** Told once, when the bug in the shipping service is fixed. */
  onBugFixed: () => void;
  /** Waits, but not beyond the signal. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}>;

const topics = {
  orders: 'orders.v1',
  ordersDeadLetters: 'orders.dlq.v1',
  payments: 'payments.v1',
  paymentsDeadLetters: 'payments.dlq',
} as const;

const partitionsPerTopic = 3;
const ordersAtOnce = 40;
const orderEveryMs = 2000;
const bugFixedAfterMs = 120_000;

/**
 * A small shop: orders are placed on `orders.v1`; the shipping service ships them and asks for their payment on
 * `payments.v1`; the payments service collects it. Both services fail on some messages and write those to their
 * dead-letter topics, where Redrive finds them:
 *
 * - an order that is cut short or not UTF-8 fails at every retry, until Redrive gives up: DEAD;
 * - a warehouse or a bank that did not answer in time mostly does at the next attempt: RESOLVED;
 * - gift cards fail because of a bug, and after it is fixed a retry helps: the reason why people redrive;
 * - a declined card stays declined: somebody has to talk to the customer.
 *
 * What is retried goes through the same services again, and when it fails again it comes back.
 */
export async function runOrdersPipeline(options: OrdersPipelineOptions): Promise<void> {
  const { broker, seed, onBugFixed, sleep = wait } = options;
  const chance = chanceFrom(seed);
  for (const topic of Object.values(topics)) await broker.createTopic(topic, partitionsPerTopic);

  // Whichever part fails stops the others, and its error is what the pipeline ends with.
  const failing = new AbortController();
  const signal = AbortSignal.any([options.signal, failing.signal]);
  let carriers = carriersWithBug;
  const fixBug = async (): Promise<void> => {
    await sleep(bugFixedAfterMs, signal);
    if (signal.aborted) return;
    carriers = carriersWithoutBug;
    onBugFixed();
  };
  const nextTurn = (): Promise<void> => sleep(orderEveryMs, signal);
  const parts = [
    placeOrders({ broker, topic: topics.orders, chance, atOnce: ordersAtOnce, nextTurn, signal }),
    consume(
      broker,
      shippingService(broker, chance, () => carriers),
      signal,
    ),
    consume(broker, paymentsService(chance), signal),
    fixBug(),
  ];
  try {
    await Promise.all(parts);
  } finally {
    failing.abort();
    await Promise.allSettled(parts);
  }
}

function shippingService(broker: Broker, chance: Chance, carriers: () => Carriers): Consumer {
  return {
    topic: topics.orders,
    group: 'shipping-service',
    async handle(record: BrokerRecord) {
      const order = decodeOrder(record.value);
      shipOrder({ carriers: carriers(), chance }, order, attemptOf(record));
      await publish(broker, {
        topic: topics.payments,
        key: record.key,
        value: Buffer.from(JSON.stringify(paymentFor(order, chance))),
        headers: [],
      });
    },
    deadLetter: (failed) => plainDeadLetter(topics.ordersDeadLetters, failed),
  };
}

function paymentsService(chance: Chance): Consumer {
  return {
    topic: topics.payments,
    group: 'payments-service',
    async handle(record: BrokerRecord) {
      const payment = JSON.parse(String(record.value)) as Payment;
      collectPayment(chance, payment, attemptOf(record));
    },
    deadLetter: (failed) => springDeadLetter(topics.paymentsDeadLetters, failed),
  };
}
