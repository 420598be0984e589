import type { Count, Keyset, Order, OrderFilter, OrderReader } from './reading-ports.ts';

export type ListPage =
  | Readonly<{ by: 'number'; offset: number; pageSize: number }>
  | Readonly<{ by: 'keyset'; after: Keyset | null; pageSize: number }>;

export type OrderPage = Readonly<{ orders: readonly Order[]; count: Count; hasNext: boolean }>;

/** One page, newest first, with the total. One row more than the page tells whether there is a next one. */
export async function listOrders(
  reader: Pick<OrderReader, 'list' | 'count'>,
  filter: OrderFilter,
  page: ListPage,
): Promise<OrderPage> {
  const count = await reader.count(filter);
  const offset = page.by === 'number' ? page.offset : 0;
  // Beyond the end there is nothing to skip to; an estimate does not know where the end is.
  if (page.by === 'number' && !count.isEstimate && offset >= count.total)
    return { orders: [], count, hasNext: false };
  const rows = await reader.list(filter, {
    limit: page.pageSize + 1,
    offset,
    after: page.by === 'keyset' ? page.after : null,
  });
  return { orders: rows.slice(0, page.pageSize), count, hasNext: rows.length > page.pageSize };
}
