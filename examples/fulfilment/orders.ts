import { pick, type Chance } from '../orders-pipeline/chance.ts';

export type Order = Readonly<{ order_id: string; sku: string; qty: number; amount: number }>;

/**
 * What becomes of an order. `flaky`: the payment service stumbles once. `heavy`: the parcel takes its time;
 * `made-to-order`: it takes minutes. `sold-out`, `declined` and `undeliverable` are refused by one service each.
 * `late-refund` is undeliverable, and the money is paid back only at the ninth attempt; of a `closed-card` it cannot be
 * paid back.
 */
export const kinds = [
  'plain',
  'flaky',
  'heavy',
  'made-to-order',
  'sold-out',
  'declined',
  'undeliverable',
  'late-refund',
  'closed-card',
] as const;
export type Kind = (typeof kinds)[number];

const skus = ['walking-shoe', 'rain-coat', 'lamp', 'tea-pot'] as const;

export function writeOrder(of: Readonly<{ run: string; number: number; kind: Kind; chance: Chance }>): Order {
  const id = `${of.kind}-${of.run}-${String(of.number).padStart(4, '0')}`;
  const qty = 1 + Math.floor(of.chance(`${id} how many`) * 3);
  return { order_id: id, sku: pick(skus, of.chance(`${id} what`)), qty, amount: 1990 * qty };
}

export function kindOf(orderId: string): Kind {
  return kinds.find((kind) => orderId.startsWith(`${kind}-`)) ?? 'plain';
}

/** Which trouble comes when: most orders have none. */
export function kindOfNumber(number: number): Kind {
  if (number % 40 === 12) return 'closed-card';
  if (number % 40 === 3) return 'late-refund';
  if (number % 40 === 9) return 'made-to-order';
  if (number % 20 === 8) return 'undeliverable';
  if (number % 10 === 4) return 'declined';
  if (number % 15 === 6) return 'sold-out';
  if (number % 8 === 5) return 'heavy';
  return number % 6 === 2 ? 'flaky' : 'plain';
}
