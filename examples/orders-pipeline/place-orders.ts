import type { Broker } from '../../src/platform/broker/port.ts';
import type { Chance } from './chance.ts';
import { encodeOrder, makeOrder } from './order.ts';
import { publish } from './publish.ts';

export type PlaceOrdersOptions = Readonly<{
  broker: Broker;
  topic: string;
  chance: Chance;
  /** So many come at once in the beginning, then one at each turn of `nextTurn`. */
  atOnce: number;
  nextTurn: () => Promise<void>;
  signal: AbortSignal;
}>;

/** The shop: puts order after order on the topic, keyed by customer, so that a customer's orders stay in order. */
export async function placeOrders(options: PlaceOrdersOptions): Promise<void> {
  const { broker, topic, chance, atOnce, nextTurn, signal } = options;
  for (let number = 1; !signal.aborted; number += 1) {
    const order = makeOrder(number, chance);
    await publish(broker, {
      topic,
      key: Buffer.from(order.customer),
      value: encodeOrder(number, order),
      headers: [{ key: Buffer.from('content-type'), value: Buffer.from('application/json') }],
    });
    if (number >= atOnce) await nextTurn();
  }
}
