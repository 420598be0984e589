import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { conditions, countMatching, exactCountLimit, type SagaCount, type SagaFilter } from './list-sagas.ts';

/** What sagas are counted by. */
export const facetFields = ['status', 'workflow_name', 'step', 'waiting_for'] as const;
export type FacetField = (typeof facetFields)[number];

export type FacetValue = Readonly<{ value: string; count: number }>;

export type Facets = Readonly<{
  count: SagaCount;
  asOf: Date;
  /** The counts are those of so many matches, scaled to all of them. Null if they are exact. */
  sampled: number | null;
  /** How many need attention. */
  needsAttention: number;
  facets: ReadonlyMap<FacetField, readonly FacetValue[]>;
}>;

const listedValues = 20;

/** If few match, the order of creation would only make the planner scan all others in it. */
function newest(filter: SagaFilter, areMany: boolean): Sql {
  const all = sql`
    SELECT t.status, t.workflow_name, t.waiting_for, t.needs_attention, t.stuck_step, t.current_step, t.definition_hash
    FROM saga.saga_states t WHERE ${conditions(filter)}`;
  return areMany ? sql`${all} ORDER BY t.created_at DESC, t.id DESC LIMIT ${exactCountLimit}` : all;
}

type FacetRow = Readonly<{
  field: FacetField | null;
  value: string | null;
  count: bigint;
  attention: bigint;
}>;

/** Counts the newest matches by field, the most frequent values first. */
export async function countFacets(db: Queryable, filter: SagaFilter): Promise<Facets> {
  const { asOf, ...count } = await countMatching(db, filter);
  const rows = await db.query<FacetRow>(sql`
    WITH matched AS MATERIALIZED (
      SELECT t.status::text AS status, t.workflow_name::text AS workflow_name, t.waiting_for, t.needs_attention,
             CASE WHEN t.status <> 'COMPLETED'
                  THEN d.definition -> 'steps' -> COALESCE(t.stuck_step, t.current_step) ->> 'name' END AS step
      FROM (${newest(filter, count.isEstimate)}) AS t
      LEFT JOIN saga.workflow_definitions d ON d.hash = t.definition_hash
    )
    SELECT CASE WHEN GROUPING(status) = 0 THEN 'status' WHEN GROUPING(workflow_name) = 0 THEN 'workflow_name'
                WHEN GROUPING(step) = 0 THEN 'step' WHEN GROUPING(waiting_for) = 0 THEN 'waiting_for' END AS field,
           COALESCE(status, workflow_name, step, waiting_for) AS value, count(*) AS count,
           count(*) FILTER (WHERE needs_attention) AS attention
    FROM matched
    GROUP BY GROUPING SETS ((status), (workflow_name), (step), (waiting_for), ())`);
  const all = rows.find(({ field }) => field === null);
  const matched = Number(all?.count ?? 0n);
  const scale = count.isEstimate && matched > 0 ? count.total / matched : 1;
  const scaled = (some: bigint): number => Math.round(Number(some) * scale);
  const valuesOf = (field: FacetField): readonly FacetValue[] =>
    rows
      .flatMap((row) =>
        row.field === field && row.value !== null ? [{ value: row.value, count: scaled(row.count) }] : [],
      )
      .toSorted((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
      .slice(0, listedValues);
  return {
    count,
    asOf,
    sampled: count.isEstimate ? matched : null,
    needsAttention: scaled(all?.attention ?? 0n),
    facets: new Map(facetFields.map((field) => [field, valuesOf(field)])),
  };
}
