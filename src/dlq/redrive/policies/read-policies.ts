import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import type { PolicyState } from '../../domain/retry-policy.ts';
import { epochMs } from '../../instant.ts';
import { isPolicyDue, policyNotFound, type PolicyDefinition } from './policies-table.ts';

/** A policy as people see it. */
export type StoredPolicy = Readonly<{
  name: string;
  isConfigured: boolean;
  definition: PolicyDefinition;
  state: PolicyState;
  stateReason: string | null;
  stateActor: string | null;
  stateAtMs: number;
  redriveId: string | null;
  lastRedriveId: string | null;
  lastResult: string | null;
  roundAtMs: number | null;
  failures: number;
  notBeforeMs: number | null;
  /** Its messages that wait for their next attempt, up to `maxCounted`. */
  waiting: number;
  due: number;
  nextAttemptAtMs: number | null;
}>;

export const maxCounted = 10_000;

const counted = (where: Sql): Sql => sql`(
  SELECT count(*)::int FROM (
    SELECT 1 FROM dlq.dlq_messages t WHERE t.retry_policy = p.name AND ${where} LIMIT ${maxCounted}) AS counted)`;

const columns: Sql = sql`
  p.name, p.place IS NOT NULL AS "isConfigured", p.definition, p.state, p.state_reason AS "stateReason",
  p.state_actor AS "stateActor", ${epochMs(sql`p.state_at`)} AS "stateAtMs", p.redrive_id AS "redriveId",
  p.last_redrive_id AS "lastRedriveId", p.last_result AS "lastResult", ${epochMs(sql`p.round_at`)} AS "roundAtMs",
  p.failures, ${epochMs(sql`p.not_before`)} AS "notBeforeMs",
  ${counted(sql`t.next_attempt_at IS NOT NULL AND t.status = 'PENDING'`)} AS waiting, ${counted(isPolicyDue)} AS due,
  ${epochMs(sql`(
    SELECT t.next_attempt_at FROM dlq.dlq_messages t
    WHERE t.retry_policy = p.name AND t.next_attempt_at IS NOT NULL AND t.status = 'PENDING'
    ORDER BY t.next_attempt_at, t.id LIMIT 1)`)} AS "nextAttemptAtMs"`;

/** In the order of the configuration; those that are not configured any more last. */
export async function listPolicies(db: Queryable): Promise<readonly StoredPolicy[]> {
  return db.query<StoredPolicy>(sql`
    SELECT ${columns} FROM dlq.retry_policies p ORDER BY p.place NULLS LAST, p.name LIMIT 1000`);
}

/** Those that are configured, in their order, without counts. */
export async function listDefinitions(
  db: Queryable,
): Promise<readonly Pick<StoredPolicy, 'name' | 'state' | 'definition'>[]> {
  return db.query(sql`
    SELECT p.name, p.state, p.definition FROM dlq.retry_policies p
    WHERE p.place IS NOT NULL ORDER BY p.place LIMIT 1000`);
}

export async function getPolicy(db: Queryable, name: string): Promise<StoredPolicy> {
  const [row] = await db.query<StoredPolicy>(sql`
    SELECT ${columns} FROM dlq.retry_policies p WHERE p.name = ${name}`);
  if (row === undefined) throw policyNotFound(name);
  return row;
}
