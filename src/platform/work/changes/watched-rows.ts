import type { Sql } from '../../postgres/sql.ts';

/** Where a slice has the rows that people look at, so that their changes can be found without any work of writers. */
export type WatchedRows = Readonly<{
  /** Every change of their rows is counted, in the statistics of PostgreSQL. With the schema. */
  tables: readonly string[];
  /**
   * The newest rows, those being worked on and those that need attention: `id` (text), `name` (topic, queue, destination
   * or workflow) and `xid` (xmin). Each part is bounded, and read in the order of an index.
   */
  rows: Sql;
  /** How many items need attention: `name` and `count`, bounded. */
  attention: Sql;
}>;

/** So many rows of each kind are compared. */
export const newestWatched = 300;
export const kindWatched = 200;
/** Beyond this the count of what needs attention is not exact. */
export const attentionCounted = 10_000;
