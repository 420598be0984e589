import { pick, type Chance } from './chance.ts';

export type Order = Readonly<{
  order_id: string;
  customer: string;
  product: string;
  category: 'parcel' | 'fragile' | 'gift card';
  quantity: number;
  amount_eur: number;
  warehouse: 'rotterdam' | 'gdansk' | 'osaka';
}>;

type Product = Readonly<{ name: string; category: Order['category']; priceEur: number }>;

const products: readonly [Product, ...Product[]] = [
  { name: 'Fountain pen', category: 'parcel', priceEur: 32 },
  { name: 'Desk lamp', category: 'fragile', priceEur: 59 },
  { name: '煎茶 100 g', category: 'parcel', priceEur: 14 },
  { name: 'Crème brûlée dishes', category: 'fragile', priceEur: 24 },
];
const giftCard: Product = { name: 'Gift card', category: 'gift card', priceEur: 50 };

/** `{"product":"お茶"}` as an old till writes it, in Shift_JIS: these bytes are no UTF-8. */
const shiftJisOrder = Buffer.concat([
  Buffer.from('{"product":"'),
  Buffer.from([0x82, 0xa8, 0x92, 0x83]),
  Buffer.from('"}'),
]);

/** The order with this number. Some are meant to make trouble, at fixed places, so that any 20 in a row have each. */
export function makeOrder(number: number, chance: Chance): Order {
  const ask = (what: string): number => chance(`${what} of order ${number}`);
  const product = number % 6 === 2 ? giftCard : pick(products, ask('product'));
  const quantity = 1 + Math.floor(ask('quantity') * 3);
  return {
    order_id: `${1000 + Math.floor(chance('run') * 9000)}-${String(number).padStart(4, '0')}`,
    customer: `customer-${1 + Math.floor(ask('customer') * 25)}`,
    product: product.name,
    category: product.category,
    quantity,
    amount_eur: quantity * product.priceEur,
    warehouse: pick(['rotterdam', 'gdansk', 'osaka'], ask('warehouse')),
  };
}

/** The bytes as the shop sends them: JSON, but not always all of it, and not always in UTF-8. */
export function encodeOrder(number: number, order: Order): Buffer {
  const json = JSON.stringify(order);
  if (number % 20 === 5) return shiftJisOrder;
  if (number % 20 === 11) return Buffer.from(json.slice(0, json.indexOf(order.product) + 4));
  return Buffer.from(json);
}

/** Throws for what is not UTF-8, not JSON or not an order: such a record fails again at every retry. */
export function decodeOrder(bytes: Buffer | null): Order {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes ?? Buffer.alloc(0));
  const value: unknown = JSON.parse(text);
  if (!isOrder(value)) throw new TypeError('the message is not an order');
  return value;
}

function isOrder(value: unknown): value is Order {
  const order = (value ?? {}) as Partial<Order>;
  return [order.order_id, order.customer, order.category, order.warehouse].every(
    (field) => typeof field === 'string',
  );
}
