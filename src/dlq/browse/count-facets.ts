import type { Queryable } from '../../platform/postgres/database.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import { epochMs, exactInstant } from '../instant.ts';
import { indexedUntil, type MessageFilter } from '../message-filter.ts';
import type { Keyset } from '../stored-message.ts';
import { countMessages, exactCountLimit, type Count } from './count-matches.ts';
import { findCandidates, type Candidates } from './message-candidates.ts';

/** What messages are counted by. */
export const facetFields = ['status', 'topic', 'error_class', 'consumer_group', 'fingerprint'] as const;
export type FacetField = (typeof facetFields)[number];

export type FacetValue = Readonly<{ value: string; count: number }>;

export type Facets = Readonly<{
  count: Count;
  /** The counts are those of so many matches, scaled to all of them. Null if they are exact. */
  sampled: number | null;
  facets: ReadonlyMap<FacetField, readonly FacetValue[]>;
  scannedUntil: Keyset | null;
  indexedUntil: Date;
}>;

const listedValues = 20;
const stepSize = 5000;
/** A person waits for the counts. */
const scanMs = 2000;

/** Counts the newest matches by field, the most frequent values first. */
export async function countFacets(
  db: Queryable,
  filter: MessageFilter,
  options: Readonly<{ scanMs?: number }> = {},
): Promise<Facets> {
  const endMs = performance.now() + (options.scanMs ?? scanMs);
  const candidates = await findCandidates(db, filter);
  const count = await countMessages(db, filter, candidates);
  const tally = createTally();
  let after: Keyset | null = null;
  let indexedUntilMs = Infinity;
  let isEnd = false;
  while (!isEnd && tally.matched() < exactCountLimit) {
    const rows: readonly StepRow[] = await db.query<StepRow>(stepStatement(candidates, after));
    const [first] = rows;
    if (first === undefined) break;
    indexedUntilMs = Math.min(indexedUntilMs, first.indexed_until);
    tally.add(rows);
    isEnd = first.scanned < BigInt(stepSize);
    after = { createdAt: first.last_created_at, id: first.last_id };
    if (performance.now() >= endMs) break;
  }
  const matched = tally.matched();
  const total = isEnd ? { total: matched, isEstimate: false } : count;
  const scale = isEnd || matched === 0 ? 1 : Math.max(1, total.total / matched);
  return {
    count: total,
    sampled: isEnd ? null : matched,
    facets: new Map(facetFields.map((field) => [field, tally.top(field, scale)])),
    scannedUntil: isEnd || matched >= exactCountLimit ? null : after,
    indexedUntil: new Date(indexedUntilMs),
  };
}

/** Adds up the values of the steps. They are at most as many as messages were read. */
function createTally() {
  const counts: Readonly<Record<FacetField, Map<string, number>>> = {
    status: new Map(),
    topic: new Map(),
    error_class: new Map(),
    consumer_group: new Map(),
    fingerprint: new Map(),
  };
  let matched = 0;
  return {
    matched: () => matched,
    add(rows: readonly StepRow[]) {
      matched += Number(rows[0]?.matched ?? 0n);
      for (const { field, value, count } of rows)
        if (field !== null && value !== null)
          counts[field].set(value, (counts[field].get(value) ?? 0) + Number(count));
    },
    /** The most frequent values of a field. */
    top: (field: FacetField, scale: number): readonly FacetValue[] =>
      [...counts[field]]
        .toSorted(([a, some], [b, more]) => more - some || (a < b ? -1 : 1))
        .slice(0, listedValues)
        .map(([value, count]) => ({ value, count: Math.round(count * scale) })),
  };
}

type StepRow = Readonly<{
  field: FacetField | null;
  value: string | null;
  count: bigint | null;
  scanned: bigint;
  matched: bigint;
  last_created_at: string;
  last_id: string;
  indexed_until: number;
}>;

const columns: Readonly<Record<FacetField, Sql>> = {
  status: sql`t.status::text`,
  topic: sql`t.original_topic::text`,
  error_class: sql`t.error_class`,
  consumer_group: sql`t.consumer_group`,
  fingerprint: sql`t.fingerprint`,
};

const names: Readonly<Record<FacetField, Sql>> = {
  status: sql`status`,
  topic: sql`topic`,
  error_class: sql`error_class`,
  consumer_group: sql`consumer_group`,
  fingerprint: sql`fingerprint`,
};

/** Always returns a row, so that the end of the step is known even if nothing matches. */
function stepStatement({ read }: Candidates, after: Keyset | null): Sql {
  const all = joinSql(
    facetFields.map((field) => names[field]),
    sql`, `,
  );
  const values = joinSql(
    facetFields.map((field) => sql`${columns[field]} AS ${names[field]}`),
    sql`, `,
  );
  const sets = joinSql(
    facetFields.map((field) => sql`(${names[field]})`),
    sql`, `,
  );
  const fields = joinSql(
    facetFields.map((field) => sql`WHEN GROUPING(${names[field]}) = 0 THEN ${field}`),
    sql` `,
  );
  return sql`
    WITH candidates AS MATERIALIZED (
      ${read({ limit: stepSize, after }, values)}
    ), counted AS (
      SELECT CASE ${fields} END AS field, left(COALESCE(${all}), 300) AS value, count(*) AS count
      FROM candidates WHERE is_match GROUP BY GROUPING SETS (${sets})
      HAVING COALESCE(${all}) IS NOT NULL
    ), step AS (
      SELECT count(*) AS scanned, count(*) FILTER (WHERE is_match) AS matched, ${indexedUntil} AS until
      FROM candidates
    )
    SELECT counted.field, counted.value, counted.count, step.scanned, step.matched,
           ${exactInstant(sql`last.created_at`)} AS last_created_at, last.id AS last_id,
           ${epochMs(sql`step.until`)} AS indexed_until
    FROM step
    LEFT JOIN (SELECT created_at, id FROM candidates ORDER BY created_at, id LIMIT 1) AS last ON true
    LEFT JOIN counted ON true`;
}
