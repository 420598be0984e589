import type { Count, Keyset, Saga, SagaFilter, SagaReader } from './reading-ports.ts';

export type ListPage =
  | Readonly<{ by: 'number'; offset: number; pageSize: number }>
  | Readonly<{ by: 'keyset'; after: Keyset | null; pageSize: number }>;

export type SagaPage = Readonly<{ sagas: readonly Saga[]; count: Count; hasNext: boolean }>;

/** One page, newest first, with the total. One row more than the page tells whether there is a next one. */
export async function listSagas(
  reader: Pick<SagaReader, 'list' | 'count'>,
  filter: SagaFilter,
  page: ListPage,
): Promise<SagaPage> {
  const count = await reader.count(filter);
  const offset = page.by === 'number' ? page.offset : 0;
  // Beyond the end there is nothing to skip to; an estimate does not know where the end is.
  if (offset > 0 && !count.isEstimate && offset >= count.total) return { sagas: [], count, hasNext: false };
  const rows = await reader.list(filter, {
    limit: page.pageSize + 1,
    offset,
    after: page.by === 'keyset' ? page.after : null,
  });
  return { sagas: rows.slice(0, page.pageSize), count, hasNext: rows.length > page.pageSize };
}
