import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import {
  conditions,
  errorCodeOf,
  estimateCount,
  exactCountLimit,
  listOrder,
  type Count,
  type OrderFilter,
} from './order-filter.ts';

/** What orders are counted by. */
export const facetFields = ['status', 'destination', 'error_code', 'fingerprint'] as const;
export type FacetField = (typeof facetFields)[number];

export type FacetValue = Readonly<{ value: string; count: number }>;

export type Facets = Readonly<{
  count: Count;
  /** The counts are those of so many of the newest matches, scaled to all of them. Null if they are exact. */
  sampled: number | null;
  facets: ReadonlyMap<FacetField, readonly FacetValue[]>;
}>;

const listedValues = 20;

/** Counts the newest matches by field, the most frequent values first. */
export async function countFacets(db: Queryable, filter: OrderFilter): Promise<Facets> {
  const rows = await db.query<
    Readonly<{ field: FacetField | null; value: string | null; count: bigint }>
  >(sql`
    WITH newest AS MATERIALIZED (
      SELECT t.status::text AS status, t.destination, ${errorCodeOf} AS error_code, t.fingerprint
      FROM outbox.outbox_orders t WHERE ${conditions(filter)}
      ORDER BY ${listOrder(filter)}
      LIMIT ${exactCountLimit + 1}
    )
    SELECT CASE WHEN GROUPING(status) = 0 THEN 'status' WHEN GROUPING(destination) = 0 THEN 'destination'
                WHEN GROUPING(error_code) = 0 THEN 'error_code' WHEN GROUPING(fingerprint) = 0 THEN 'fingerprint'
           END AS field,
           COALESCE(status, destination, error_code, fingerprint) AS value, count(*) AS count
    FROM newest
    GROUP BY GROUPING SETS ((status), (destination), (error_code), (fingerprint), ())`);
  const found = Number(rows.find(({ field }) => field === null)?.count ?? 0n);
  const isExact = found <= exactCountLimit;
  const total = isExact ? found : Math.max(found, await estimateCount(db, filter));
  const scale = isExact ? 1 : total / found;
  const topOf = (field: FacetField): readonly FacetValue[] =>
    rows
      .flatMap((row) => (row.field === field && row.value !== null ? [{ ...row, value: row.value }] : []))
      .toSorted((a, b) => Number(b.count - a.count) || (a.value < b.value ? -1 : 1))
      .slice(0, listedValues)
      .map(({ value, count }) => ({ value, count: Math.round(Number(count) * scale) }));
  return {
    count: { total, isEstimate: !isExact },
    sampled: isExact ? null : found,
    facets: new Map(facetFields.map((field) => [field, topOf(field)])),
  };
}
