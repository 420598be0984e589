import { useInfiniteQuery, type InfiniteData } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useApi } from '../session/api-context.ts';
import { loadedOf, type EmptyReason, type Loaded } from '../../lib/loaded.ts';
import type { MoreRows } from './list-foot.tsx';
import { useLiveRows, type FirstPage, type ListLive, type LiveOptions } from './use-live-rows.ts';

type Paged = Readonly<{
  pagination: Readonly<{
    total_count: number;
    has_next: boolean;
    next_cursor?: string | null;
    total_is_estimate?: true;
  }>;
}>;

export type PagedOptions<Page, Row> = Readonly<{
  key: readonly string[];
  path: string;
  /** Besides page size and cursor. */
  parameters: readonly (readonly [string, string])[];
  rowsOf: (page: Page) => readonly Row[];
  /** Whether rows may be missing because of a filter, or there are none. */
  whyEmpty: EmptyReason;
  isEnabled?: boolean;
  pageSize?: number;
  /** Asks again after so many milliseconds; false: never. */
  everyMs?: number | false;
  /** Keeps the list up to date: see `LiveOptions`. Give `live` of the result to the table. */
  live?: LiveOptions<Row>;
}>;

export type PagedRows<Row> = Readonly<{
  loaded: Loaded<readonly Row[]>;
  more: MoreRows;
  refetch: () => void;
  live: ListLive<Row> | undefined;
}>;

/** A list of the API by its cursor, page by page. */
export function usePagedRows<Page extends Paged, Row>(options: PagedOptions<Page, Row>): PagedRows<Row> {
  const { key, path, parameters, rowsOf, whyEmpty, pageSize = 100, everyMs = false } = options;
  const api = useApi();
  const search = parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
  const readPage = (cursor: string, signal?: AbortSignal): Promise<Page> =>
    api.get<Page>(
      `${path}?page_size=${pageSize}&cursor=${encodeURIComponent(cursor)}${search === '' ? '' : `&${search}`}`,
      signal,
    );
  const query = useInfiniteQuery<Page, Error, InfiniteData<Page>, readonly string[], string>({
    queryKey: [...key, search],
    queryFn: ({ pageParam, signal }) => readPage(pageParam, signal),
    initialPageParam: '',
    getNextPageParam: ({ pagination }) => pagination.next_cursor ?? undefined,
    enabled: options.isEnabled ?? true,
    refetchInterval: everyMs,
  });
  const { data } = query;
  const rows = useMemo(() => data?.pages.flatMap(rowsOf), [data]);
  const total = totalOf(data?.pages.at(-1));
  const shown = useLiveRows<Row>({
    live: options.live,
    rows,
    total,
    hasFailed: query.error !== null,
    isRefetching: query.isRefetching && !query.isFetchingNextPage,
    readFirst: async (): Promise<FirstPage<Row>> => {
      const page = await readPage('');
      return { rows: rowsOf(page), isWhole: !page.pagination.has_next, total: totalOf(page) };
    },
    refetch: () => query.refetch(),
  });
  return {
    loaded: loadedOf(
      {
        data: shown.rows,
        error: query.error ?? shown.error,
        isFetching: query.isFetching && !query.isFetchingNextPage,
      },
      (found) => (found.length === 0 ? whyEmpty : null),
    ),
    more: {
      hasMore: query.hasNextPage,
      isLoading: query.isFetchingNextPage,
      onLoad: () => void query.fetchNextPage(),
      total,
    },
    refetch: () => void query.refetch(),
    live: shown.live,
  };
}

/** Negative if it is an estimate; null if there is no page. */
function totalOf(page: Paged | undefined): number | null {
  if (page === undefined) return null;
  const { total_count: count, total_is_estimate: isEstimate } = page.pagination;
  return isEstimate === true ? -count : count;
}
