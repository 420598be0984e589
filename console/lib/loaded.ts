/**
 * What a panel shows. An error is never an empty list: `failed` keeps what was loaded before, and only an answer of the
 * server that has no rows is `empty`.
 */
export type Loaded<T> =
  | Readonly<{ state: 'loading' }>
  | Readonly<{ state: 'failed'; error: Error; last: T | null }>
  | Readonly<{ state: 'empty'; reason: EmptyReason; isRefreshing: boolean }>
  | Readonly<{ state: 'rows'; rows: T; isRefreshing: boolean }>;

/** `nothing`: there is nothing to show, which may be good. `filter`: the filter excludes everything. */
export type EmptyReason = 'nothing' | 'filter' | 'not_set_up';

/** The part of a query's result that matters here. */
type Query<T> = Readonly<{ data: T | undefined; error: Error | null; isFetching: boolean }>;

/** `whyEmpty` is null for data with rows. */
export function loadedOf<T>(query: Query<T>, whyEmpty: (data: T) => EmptyReason | null): Loaded<T> {
  const { data, error, isFetching } = query;
  if (error !== null) return { state: 'failed', error, last: data ?? null };
  if (data === undefined) return { state: 'loading' };
  const reason = whyEmpty(data);
  return reason === null
    ? { state: 'rows', rows: data, isRefreshing: isFetching }
    : { state: 'empty', reason, isRefreshing: isFetching };
}
