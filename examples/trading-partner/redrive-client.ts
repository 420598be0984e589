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

const timeoutMs = 10_000;

/** Calls end with the signal, or when Redrive has not answered for a long time. */
export function createRedriveClient(url: string, stopping: AbortSignal): RedriveClient {
  const outbox = `${url}/api/v1/outbox`;
  const signal = (): AbortSignal => AbortSignal.any([stopping, AbortSignal.timeout(timeoutMs)]);
  return {
    async place(order) {
      const answer = await post(`${outbox}/orders`, order, signal());
      if (answer === 'none' || answer.status === 409 || answer.status >= 500) return 'later';
      if (!answer.ok) throw new Error(`the order was not taken: HTTP ${answer.status}: ${answer.text}`);
      return 'placed';
    },
    async needingPerson() {
      const { orders, pagination } = await get<OrderList>(
        `${outbox}/orders?needs_attention=true&page_size=100`,
        signal(),
      );
      return { count: pagination.total_count, orders };
    },
    async waiting() {
      const { destinations } = await get<Destinations>(`${outbox}/destinations`, signal());
      return Math.max(0, ...destinations.map((destination) => destination.waiting));
    },
  };
}

type OrderList = Readonly<{
  orders: readonly StuckOrder[];
  pagination: Readonly<{ total_count: number }>;
}>;
type Destinations = Readonly<{ destinations: readonly Readonly<{ waiting: number }>[] }>;

type Answer = Readonly<{ ok: boolean; status: number; text: string }>;

async function post(url: string, order: DeskOrder, signal: AbortSignal): Promise<Answer | 'none'> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': order.idempotency_key,
        'x-actor': 'demo-desk',
      },
      body: JSON.stringify(order),
      signal,
    });
    return { ok: answer.ok, status: answer.status, text: await answer.text() };
  } catch {
    return 'none';
  }
}

async function get<T>(url: string, signal: AbortSignal): Promise<T> {
  const answer = await fetch(url, { signal });
  if (!answer.ok) throw new Error(`GET ${url}: HTTP ${answer.status}`);
  return (await answer.json()) as T;
}
