import { sleep } from '../../../kernel/clock.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { hasRow } from '../../../platform/work/work.ts';
import { keepUpdatedAt, messages, unscheduled } from '../../messages-table.ts';
import { definitionOf, type PolicyDefinition, type RetryPolicy } from './policies-table.ts';

const batchSize = 5000;
/** Messages are locked while they are claimed or settled, or by a person who edits them. */
const lockedRestMs = 500;

/**
 * Stores the configured policies. If it has changed which messages they retry, or when, all messages are scheduled
 * again; only then the new definitions are stored, so that a process that takes over in between starts again. The state
 * of a policy is that of its name: it survives changes, and a time without the policy.
 */
export async function syncPolicies(
  db: Database,
  policies: readonly RetryPolicy[],
  leased: AbortSignal,
): Promise<Readonly<{ isChanged: boolean }>> {
  const stored = await db.query<Readonly<{ name: string; definition: PolicyDefinition }>>(sql`
    SELECT name, definition FROM dlq.retry_policies WHERE place IS NOT NULL ORDER BY place`);
  const wanted = policies.map((policy) => ({ name: policy.name, definition: definitionOf(policy) }));
  const isChanged = scheduleKey(stored) !== scheduleKey(wanted);
  if (isChanged) await unscheduleAll(db, leased);
  if (leased.aborted) return { isChanged };
  await db.transaction(async (tx) => {
    await tx.query(
      sql`UPDATE dlq.retry_policies SET place = NULL WHERE name <> ALL(${wanted.map(({ name }) => name)}::text[])`,
    );
    for (const [place, { name, definition }] of wanted.entries())
      await tx.query(sql`
        INSERT INTO dlq.retry_policies (name, place, definition)
        VALUES (${name}, ${place + 1}, ${JSON.stringify(definition)}::jsonb)
        ON CONFLICT (name) DO UPDATE SET place = EXCLUDED.place, definition = EXCLUDED.definition`);
  });
  return { isChanged };
}

/** What decides which messages a policy retries, and when. The keys of stored JSON have another order. */
function scheduleKey(policies: readonly Readonly<{ name: string; definition: PolicyDefinition }>[]): string {
  return JSON.stringify(
    policies.map(({ name, definition: d }) => [
      name,
      d.topics,
      d.error_classes,
      d.fingerprints,
      d.delay_seconds,
      d.backoff,
      d.max_attempts,
    ]),
  );
}

/** Waits for rows that other transactions have locked: a message must not keep the time of a policy that has changed. */
async function unscheduleAll(db: Database, leased: AbortSignal): Promise<void> {
  while (!leased.aborted) {
    const count = await db.transaction(unscheduleBatch);
    if (count > 0) continue;
    if (!(await hasRow(db, messages, sql`t.next_attempt_at IS NOT NULL`))) return;
    await sleep(lockedRestMs, leased);
  }
}

async function unscheduleBatch(tx: Queryable): Promise<number> {
  await keepUpdatedAt(tx);
  const rows = await tx.query(sql`
    WITH picked AS MATERIALIZED (
      SELECT t.id FROM dlq.dlq_messages t WHERE t.next_attempt_at IS NOT NULL
      LIMIT ${batchSize} FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE dlq.dlq_messages t SET ${unscheduled} FROM picked WHERE t.id = picked.id
    RETURNING t.id`);
  return rows.length;
}
