import type { Count, Keyset, Saga, SagaFilter, SagaReader } from './reading-ports.ts';

export type ListPage =
  | Readonly<{ by: 'number'; offset: number; pageSize: number }>
  | Readonly<{ by: 'keyset'; after: Keyset | null; pageSize: number }>;

export type SagaPage = Readonly<{ sagas: readonly Saga[]; count: Count; hasNext: boolean }>;

/** One page, newest first, with the total. One row more than the page tells whether there is a next one. */
export async function listSagas(
  reader: Pick<SagaReader, 'list'>,
  filter: SagaFilter,
  page: ListPage,
): Promise<SagaPage> {
  const { sagas, count } = await reader.list(filter, {
    limit: page.pageSize + 1,
    offset: page.by === 'number' ? page.offset : 0,
    after: page.by === 'keyset' ? page.after : null,
  });
  return { sagas: sagas.slice(0, page.pageSize), count, hasNext: sagas.length > page.pageSize };
}
