import type { Chance } from './chance.ts';
import type { Order } from './order.ts';

export type Carriers = ReadonlyMap<Order['category'], string>;

/** The bug: when gift cards were added to the shop, nobody told the shipping service. */
export const carriersWithBug: Carriers = new Map([
  ['parcel', 'ground'],
  ['fragile', 'padded van'],
]);

export const carriersWithoutBug: Carriers = new Map([...carriersWithBug, ['gift card', 'e-mail']]);

export type ShippingDeps = Readonly<{ carriers: Carriers; chance: Chance }>;

const warehouseTimeoutMs = 2000;
const osakaTimesOut = 0.35;

/** Ships one order or throws. `attempt` counts the retries: the warehouse that was too slow may answer next time. */
export function shipOrder({ carriers, chance }: ShippingDeps, order: Order, attempt: number): void {
  if (!carriers.has(order.category)) throw new NoCarrierError(`no carrier for category ${order.category}`);
  const isSlow = chance(`warehouse for ${order.order_id}, attempt ${attempt}`) < osakaTimesOut;
  if (order.warehouse === 'osaka' && isSlow)
    throw new WarehouseTimeoutError(`warehouse osaka did not answer within ${warehouseTimeoutMs} ms`);
}

class NoCarrierError extends Error {
  override readonly name = 'NoCarrierError';
}

class WarehouseTimeoutError extends Error {
  override readonly name = 'WarehouseTimeoutError';
}
