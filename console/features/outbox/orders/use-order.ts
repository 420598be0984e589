import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useLiveState } from '../../../components/live/live-context.ts';
import { useLiveReading } from '../../../components/live/use-live-reading.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { memberText } from '../../../lib/exact-json/member-text.ts';
import type { OrderDetails } from '../../../lib/server-shapes.ts';

const busyMs = 1000;
const restingMs = 5000;

/** An order, and its request with the digits of its numbers. */
export type LoadedOrder = Readonly<{ order: OrderDetails; requestText: string | null }>;

/** One order, read again when it changes. */
export function useOrder(id: string) {
  const api = useApi();
  const queries = useQueryClient();
  const isLive = useLiveState(({ connection }) => connection === 'live');
  const query = useQuery({
    queryKey: ['outbox', 'order', id],
    queryFn: async ({ signal }): Promise<LoadedOrder> => {
      const { value, text } = await api.read<OrderDetails>(orderPath(id), signal);
      return loadedOrder(value, text);
    },
    refetchInterval: ({ state: { data } }) => {
      // Events are about the order itself; how many wait behind it changes without one.
      if (isLive) return data?.order.lane == null ? false : restingMs;
      return data?.order.status === 'sending' ? busyMs : restingMs;
    },
  });
  useLiveReading({
    slices: ['outbox'],
    isOwn: ({ ids, many }) => many || ids.includes(id),
    read: () => query.refetch(),
    // A correction is kept apart, and has to know when somebody else has decided.
    ignoresHold: true,
  });
  return {
    query: { data: query.data, error: query.error, isFetching: query.isFetching },
    /** After an action: the order and all lists are old. */
    readAgain: async (): Promise<void> => {
      for (const list of ['orders', 'facets', 'destinations', 'ledger'])
        void queries.invalidateQueries({ queryKey: ['outbox', list] });
      await query.refetch();
    },
  };
}

export type OrderHandle = ReturnType<typeof useOrder>;

export function loadedOrder(order: OrderDetails, text: string): LoadedOrder {
  return { order, requestText: order.request_omitted === true ? null : memberText(text, 'request') };
}

export function orderPath(id: string | number): string {
  return `/api/v1/outbox/orders/${encodeURIComponent(id)}`;
}
