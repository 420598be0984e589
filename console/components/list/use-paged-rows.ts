import { useInfiniteQuery, type InfiniteData } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useApi } from '../session/api-context.ts';
import { loadedOf, type EmptyReason, type Loaded } from '../../lib/loaded.ts';
import type { MoreRows } from './list-foot.tsx';

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
}>;

export type PagedRows<Row> = Readonly<{
  loaded: Loaded<readonly Row[]>;
  more: MoreRows;
  refetch: () => void;
}>;

/** A list of the API by its cursor, page by page. */
export function usePagedRows<Page extends Paged, Row>(options: PagedOptions<Page, Row>): PagedRows<Row> {
  const { key, path, parameters, rowsOf, whyEmpty, pageSize = 100, everyMs = false } = options;
  const api = useApi();
  const search = parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
  const query = useInfiniteQuery<Page, Error, InfiniteData<Page>, readonly string[], string>({
    queryKey: [...key, search],
    queryFn: ({ pageParam, signal }) =>
      api.get<Page>(
        `${path}?page_size=${pageSize}&cursor=${encodeURIComponent(pageParam)}${search === '' ? '' : `&${search}`}`,
        signal,
      ),
    initialPageParam: '',
    getNextPageParam: ({ pagination }) => pagination.next_cursor ?? undefined,
    enabled: options.isEnabled ?? true,
    refetchInterval: everyMs,
  });
  const { data } = query;
  const rows = useMemo(() => data?.pages.flatMap(rowsOf), [data]);
  const last = data?.pages.at(-1)?.pagination;
  const total = last === undefined ? null : last.total_count * (last.total_is_estimate === true ? -1 : 1);
  return {
    loaded: loadedOf(
      { data: rows, error: query.error, isFetching: query.isFetching && !query.isFetchingNextPage },
      (found) => (found.length === 0 ? whyEmpty : null),
    ),
    more: {
      hasMore: query.hasNextPage,
      isLoading: query.isFetchingNextPage,
      onLoad: () => void query.fetchNextPage(),
      total,
    },
    refetch: () => void query.refetch(),
  };
}
