import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { RetryPolicy } from '../../src/dlq/redrive/policies/policies-table.ts';
import { scheduleMessages } from '../../src/dlq/redrive/policies/schedule-messages.ts';
import { syncPolicies } from '../../src/dlq/redrive/policies/sync-policies.ts';

/** Retry policies on a database, without a server. */

const always = new AbortController().signal;
export const minuteMs = 60_000;

export function retryPolicy(more: Partial<RetryPolicy> = {}): RetryPolicy {
  return {
    name: 'orders',
    topics: ['orders.*'],
    delayMs: 10 * minuteMs,
    backoff: 2,
    maxAttempts: 3,
    ratePerSecond: 10,
    ...more,
  };
}

const isDeadLetterTopic = (topic: string): boolean => topic.endsWith('.dlq');

/** Whether it has changed which messages are retried, or when. */
export async function storePolicies(db: Database, ...policies: readonly RetryPolicy[]): Promise<boolean> {
  return (await syncPolicies(db, policies, always)).isChanged;
}

/** Stores the policies, and returns how many messages they have scheduled. */
export async function schedule(db: Database, ...policies: readonly RetryPolicy[]): Promise<number> {
  await storePolicies(db, ...policies);
  return scheduleMessages({ db, isDeadLetterTopic }, policies, always);
}

export async function makeDue(db: Database): Promise<void> {
  await db.query(sql`
    UPDATE dlq.dlq_messages SET next_attempt_at = clock_timestamp() - interval '1 second'
    WHERE next_attempt_at IS NOT NULL`);
}

export async function clearPolicies(db: Database): Promise<void> {
  await db.query(sql`
    TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items, dlq.retry_policies,
             platform.notify_events`);
}
