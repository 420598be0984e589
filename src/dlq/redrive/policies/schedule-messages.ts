import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import { maxExponent, maxRetryDelayMs, type RetryDelay } from '../../domain/retry-policy.ts';
import { compileGlobs } from '../../../kernel/glob/match-glob.ts';
import { exactInstant } from '../../instant.ts';
import { isDue, isIncomplete, keepUpdatedAt } from '../../messages-table.ts';
import { inScope } from '../planned/plan-scope.ts';
import type { RedriveFilter } from '../planned/redrives-table.ts';
import { isPolicyDue, type RetryPolicy } from './policies-table.ts';

/**
 * When a policy retries a message: `delay` × `backoff`^`retry_count` after the end of its last attempt, or after it was
 * stored. The time is written here, not by the settle, so that retries cost the same with and without policies, and
 * `updated_at`, from which it is computed, does not change.
 */
export type ScheduleDeps = Readonly<{
  db: Database;
  isDeadLetterTopic: (topic: string) => boolean;
}>;

/** Each statement looks at this many PENDING messages. */
const pageSize = 10_000;
/** Headers choose the names of topics, so their number has no limit; those with the most PENDING messages count. */
const maxTopics = 10_000;

/** Schedules PENDING messages that are not scheduled yet, each by the first policy that matches it. */
export async function scheduleMessages(
  { db, isDeadLetterTopic }: ScheduleDeps,
  policies: readonly RetryPolicy[],
  leased: AbortSignal,
): Promise<number> {
  let scheduled = 0;
  const topics = await listPendingTopics(db);
  for (const [topic, rules] of rulesByTopic(policies, topics, isDeadLetterTopic))
    for (let after: Place | null = firstPlace; after !== null && !leased.aborted;) {
      const from = after;
      const page: Page = await db.transaction((tx) => schedulePage(tx, { topic, rules, after: from }));
      scheduled += page.scheduled;
      after = page.next;
    }
  return scheduled;
}

async function listPendingTopics(db: Queryable): Promise<readonly string[]> {
  const rows = await db.query<{ topic: string }>(sql`
    SELECT original_topic AS topic FROM dlq.topic_counts WHERE status = 'PENDING'
    GROUP BY original_topic HAVING sum(messages) > 0
    ORDER BY sum(messages) DESC, original_topic LIMIT ${maxTopics}`);
  return rows.map(({ topic }) => topic);
}

/**
 * The policies that match each topic, in their order. A message whose original topic is a dead-letter topic has no place
 * to go to: it matches none.
 */
function rulesByTopic(
  policies: readonly RetryPolicy[],
  topics: readonly string[],
  isDeadLetterTopic: (topic: string) => boolean,
): ReadonlyMap<string, readonly RetryPolicy[]> {
  const matchers = policies.map((policy) => ({ policy, matches: compileGlobs(policy.topics) }));
  return new Map(
    topics.flatMap((topic) => {
      const rules = matchers.filter(({ matches }) => matches(topic)).map(({ policy }) => policy);
      return rules.length === 0 || isDeadLetterTopic(topic) ? [] : [[topic, rules] as const];
    }),
  );
}

type Place = Readonly<{ createdAt: string; id: string }>;
const firstPlace: Place = { createdAt: '-infinity', id: '00000000-0000-0000-0000-000000000000' };

type Page = Readonly<{ scheduled: number; next: Place | null }>;

async function schedulePage(
  tx: Queryable,
  { topic, rules, after }: Readonly<{ topic: string; rules: readonly RetryPolicy[]; after: Place }>,
): Promise<Page> {
  await keepUpdatedAt(tx);
  const [row] = await tx.query<
    Readonly<{ seen: number; scheduled: number; createdAt: string; id: string }>
  >(sql`
    WITH rules AS MATERIALIZED (${rulesTable(rules)}), page AS MATERIALIZED (
      SELECT t.id, t.created_at FROM dlq.dlq_messages t
      WHERE t.original_topic = ${topic} AND t.status = 'PENDING'
        AND (t.created_at, t.id) > (${after.createdAt}::timestamptz, ${after.id}::uuid)
      ORDER BY t.created_at, t.id
      LIMIT ${pageSize}
    ), picked AS MATERIALIZED (
      SELECT t.id, rule.name, ${dueAt} AS due_at
      FROM page JOIN dlq.dlq_messages t ON t.id = page.id
      CROSS JOIN LATERAL (
        SELECT r.* FROM rules r
        WHERE (r.error_classes IS NULL OR t.error_class = ANY(r.error_classes))
          AND (r.fingerprints IS NULL OR t.fingerprint = ANY(r.fingerprints))
        ORDER BY r.place LIMIT 1
      ) AS rule
      WHERE t.next_attempt_at IS NULL AND NOT t.unroutable AND NOT ${isIncomplete} AND ${isDue} AND t.retry_count < rule.max_attempts
      FOR NO KEY UPDATE OF t SKIP LOCKED
    ), scheduled AS (
      UPDATE dlq.dlq_messages t SET next_attempt_at = picked.due_at, retry_policy = picked.name
      FROM picked WHERE t.id = picked.id
      RETURNING t.id
    )
    SELECT (SELECT count(*) FROM page)::int AS seen, (SELECT count(*) FROM scheduled)::int AS scheduled,
           ${exactInstant(sql`last.created_at`)} AS "createdAt", last.id
    FROM (SELECT created_at, id FROM page ORDER BY created_at DESC, id DESC LIMIT 1) AS last`);
  if (row === undefined) return { scheduled: 0, next: null };
  return { scheduled: row.scheduled, next: row.seen < pageSize ? null : row };
}

function rulesTable(rules: readonly RetryPolicy[]): Sql {
  const rows = rules.map((policy, place) => ({
    place,
    name: policy.name,
    error_classes: policy.errorClasses ?? null,
    fingerprints: policy.fingerprints ?? null,
    delay_ms: policy.delayMs,
    backoff: policy.backoff,
    max_attempts: policy.maxAttempts,
  }));
  return sql`
    SELECT * FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS r (
      place int, name text, error_classes text[], fingerprints text[], delay_ms float8, backoff float8,
      max_attempts int)`;
}

/** As `retryDelayMs` in the domain. */
const delayFrom = (delayMs: Sql, backoff: Sql): Sql => sql`
  LEAST(${maxRetryDelayMs}::float8,
        ${delayMs} * power(${backoff}, LEAST(GREATEST(t.retry_count, 0), ${maxExponent}::int))) * interval '1 millisecond'`;

/** Not in the past, so that what a round has left can be told from what was scheduled after it. */
const dueAt: Sql = sql`
  GREATEST(clock_timestamp(),
           LEAST(t.updated_at, clock_timestamp()) + ${delayFrom(sql`rule.delay_ms`, sql`rule.backoff`)})`;

/** What a round has not claimed is due again after the delay, counted from now. */
export async function postponeDue(
  tx: Queryable,
  filter: RedriveFilter,
  { delayMs, backoff }: RetryDelay,
): Promise<void> {
  await keepUpdatedAt(tx);
  await tx.query(sql`
    WITH picked AS MATERIALIZED (
      SELECT t.id FROM dlq.dlq_messages t WHERE ${inScope({ kind: 'retry', filter })} FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE dlq.dlq_messages t
    SET next_attempt_at = clock_timestamp() + ${delayFrom(sql`${delayMs}::float8`, sql`${backoff}::float8`)}
    FROM picked WHERE t.id = picked.id`);
}

/** The messages of a policy that are due first, at most `limit`, as the filter of a redrive; null if none is due. */
export async function findDue(db: Queryable, name: string, limit: number): Promise<RedriveFilter | null> {
  const [last] = await db.query<Readonly<{ at: string; id: string }>>(sql`
    SELECT ${exactInstant(sql`due.next_attempt_at`)} AS at, due.id FROM (
      SELECT t.next_attempt_at, t.id FROM dlq.dlq_messages t
      WHERE t.retry_policy = ${name} AND ${isPolicyDue}
      ORDER BY t.next_attempt_at, t.id
      LIMIT ${limit}
    ) AS due
    ORDER BY due.next_attempt_at DESC, due.id DESC
    LIMIT 1`);
  return last === undefined
    ? null
    : { status: ['PENDING'], policy: name, due_until: last.at, due_until_id: last.id };
}
