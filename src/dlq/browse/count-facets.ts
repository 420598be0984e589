import type { Queryable } from '../../platform/postgres/database.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import { epochMs, exactInstant } from '../instant.ts';
import { indexedUntil, type MessageFilter } from '../message-filter.ts';
import type { Keyset } from '../stored-message.ts';
import { countMessages, exactCountLimit, type Count } from './count-matches.ts';
import { allOf, findCandidates, type Candidates } from './message-candidates.ts';

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
  status: sql`t.status`,
  topic: sql`t.original_topic`,
  error_class: sql`t.error_class`,
  consumer_group: sql`t.consumer_group`,
  fingerprint: sql`t.fingerprint`,
};

/** Always returns a row, so that the end of the step is known even if nothing matches. */
function stepStatement({ tables, select, rest }: Candidates, after: Keyset | null): Sql {
  const fields = facetFields.map(
    (field, i) =>
      sql`SELECT ${field}::text AS field, m.v[${i + 1}::int] AS value, count(*) AS count FROM matching m GROUP BY 2`,
  );
  const values = joinSql(
    facetFields.map((field) => sql`left(${columns[field]}, 300)`),
    sql`, `,
  );
  return sql`
    WITH candidates AS MATERIALIZED (
      SELECT c.id, c.created_at FROM (${select(stepSize, after)}) AS c
      ORDER BY c.created_at DESC, c.id DESC
      LIMIT ${stepSize}
    ), matching AS MATERIALIZED (
      SELECT ARRAY[${values}] AS v FROM candidates c JOIN ${tables.messages} t ON t.id = c.id WHERE ${allOf(rest)}
    ), counted AS (
      SELECT * FROM (${joinSql(fields, sql` UNION ALL `)}) AS f WHERE f.value IS NOT NULL
    )
    SELECT counted.field, counted.value, counted.count,
           (SELECT count(*) FROM candidates) AS scanned, (SELECT count(*) FROM matching) AS matched,
           ${exactInstant(sql`last.created_at`)} AS last_created_at, last.id AS last_id,
           ${epochMs(indexedUntil)} AS indexed_until
    FROM (SELECT 1) AS step
    LEFT JOIN (SELECT created_at, id FROM candidates ORDER BY created_at, id LIMIT 1) AS last ON true
    LEFT JOIN counted ON true`;
}
