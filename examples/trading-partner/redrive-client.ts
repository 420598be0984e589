import { redriveAt, takenOrLater } from '../redrive-http.ts';
import type { DeskOrder } from './desk-orders.ts';

/** What the desk needs of Redrive's API. */
export type RedriveClient = Readonly<{
  /** `later`: nobody knows whether it was taken, so it has to be placed again, with the same key. */
  place(order: DeskOrder): Promise<'placed' | 'later'>;
  /** Dead orders that nobody has decided about, the newest first, and how many there are. */
  needingPerson(): Promise<Readonly<{ count: number; orders: readonly StuckOrder[] }>>;
  /** How many orders wait for the fullest destination. */
  waiting(): Promise<number>;
}>;

/** What the desk reads of an order. */
export type StuckOrder = Readonly<{
  id: number;
  ordering_key: string | null;
  in_doubt: boolean;
  /** Null where it is too large for a list. */
  request: Readonly<Record<string, unknown>> | null;
}>;

const CONFLICT = 409;

export function createRedriveClient(url: string, signal: AbortSignal): RedriveClient {
  const redrive = redriveAt(url, 'demo-desk');
  return {
    async place(order) {
      const adding = redrive.addOrder(order, { idempotencyKey: order.idempotency_key, signal });
      const result = await takenOrLater(adding, signal, (status) => status === CONFLICT);
      return result === 'taken' ? 'placed' : 'later';
    },
    async needingPerson() {
      const { orders, pagination } = await redrive.listOrders(
        { needs_attention: true, page_size: 100 },
        { signal },
      );
      return { count: pagination.total_count, orders: orders.map(stuckOrder) };
    },
    async waiting() {
      const { destinations } = await redrive.listDestinations({}, { signal });
      return Math.max(0, ...destinations.map((destination) => destination.waiting));
    },
  };
}

/** The API does not say what a request holds; the desk sends objects only. */
function stuckOrder({
  request,
  ...order
}: Omit<StuckOrder, 'request'> & Readonly<{ request: unknown }>): StuckOrder {
  return { ...order, request: request as StuckOrder['request'] };
}
