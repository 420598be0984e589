import type { Act, Outcome } from '../../kernel/audit/act.ts';
import { insertActs } from '../../platform/audit/record-act.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { AttemptEnd } from './settle-messages.ts';

/**
 * A person retries one message. What is published cannot be taken back by a transaction, so the audit log gets two
 * events with one operation: `started` with the claim, and the outcome with the settle. If the process is lost between
 * them, the reaper adds `unknown`.
 */
export type RecordedRetry = Readonly<{ act: Act; operationId: string }>;

const outcomes: Readonly<Record<AttemptEnd, Outcome>> = {
  published: 'success',
  not_published: 'success',
  failed: 'failure',
  unknown: 'unknown',
  released: 'failure',
};

/** A CTE over `claimed`, with a leading comma. */
export function recordStart(retry: RecordedRetry): Sql {
  return recordFrom(retry, {
    from: sql`claimed`,
    outcome: 'started',
    detail: sql`jsonb_build_object('attempt', attempt_no)`,
  });
}

/** A CTE over `ended`, which has the message's columns and `partition`, `offset` and `detail`, with a leading comma. */
export function recordEnd(retry: RecordedRetry | undefined, kind: AttemptEnd): Sql {
  if (retry === undefined) return sql``;
  return recordFrom(retry, {
    from: sql`ended`,
    outcome: outcomes[kind],
    detail: sql`jsonb_strip_nulls(jsonb_build_object(
      'attempt', attempt_no, 'end', ${kind}::text, 'status', status, 'topic', original_topic,
      'partition', partition, 'offset', "offset", 'error', left(detail, 500)))`,
  });
}

function recordFrom(
  { act, operationId }: RecordedRetry,
  { from, outcome, detail }: Readonly<{ from: Sql; outcome: Outcome; detail: Sql }>,
): Sql {
  return sql`, recorded AS (${insertActs(act, {
    resource: sql`'dlq/messages/' || id`,
    names: { topics: sql`ARRAY[original_topic]` },
    operationId: sql`${operationId}::uuid`,
    from,
    outcome,
    detail,
  })})`;
}
