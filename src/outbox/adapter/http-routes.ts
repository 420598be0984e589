import type { HttpApp } from '../../platform/http/http-app.ts';
import type { DescribeDeps } from '../usecase/describe-destinations.ts';
import type { Destination, OrderStore } from '../usecase/ports.ts';
import type { OrderReader } from '../usecase/reading-ports.ts';
import { addActionRoutes } from './action-routes.ts';
import { addOrderRoutes } from './order-routes.ts';

export type OutboxRouteDeps = Readonly<{
  store: OrderStore;
  reader: OrderReader;
  /** Every destination that this process knows, the internal ones included, by name. */
  destinations: ReadonlyMap<string, Pick<Destination, 'name' | 'type' | 'isInternal' | 'policy' | 'flawsOf'>>;
  gateOf: DescribeDeps['gateOf'];
}>;

export function addOutboxRoutes(app: HttpApp, deps: OutboxRouteDeps): void {
  addOrderRoutes(app, deps);
  addActionRoutes(app, deps);
}
