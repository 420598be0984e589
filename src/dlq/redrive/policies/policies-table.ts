import { AppError } from '../../../kernel/errors.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import type { Canary } from '../../domain/canary.ts';
import type { RedriveState } from '../../domain/redrive.ts';
import {
  gatherMs,
  type PolicyFacts,
  type PolicyState,
  type RetryDelay,
  type RoundRedrive,
} from '../../domain/retry-policy.ts';

/** A policy as it is configured. */
export type RetryPolicy = RetryDelay &
  Readonly<{
    name: string;
    /** Patterns of original topics. */
    topics: readonly string[];
    /** Undefined: all. */
    errorClasses?: readonly string[] | undefined;
    fingerprints?: readonly string[] | undefined;
    maxAttempts: number;
    ratePerSecond: number;
    canary?: Readonly<{ stages: readonly number[]; watchMs: number; stopPercent: number }> | undefined;
  }>;

/** As it is stored and shown. */
export type PolicyDefinition = Readonly<{
  topics: readonly string[];
  error_classes: readonly string[] | null;
  fingerprints: readonly string[] | null;
  delay_seconds: number;
  backoff: number;
  max_attempts: number;
  rate_per_second: number;
  canary: Canary | null;
}>;

export function definitionOf(policy: RetryPolicy): PolicyDefinition {
  const { canary } = policy;
  return {
    topics: policy.topics,
    error_classes: policy.errorClasses ?? null,
    fingerprints: policy.fingerprints ?? null,
    delay_seconds: policy.delayMs / 1000,
    backoff: policy.backoff,
    max_attempts: policy.maxAttempts,
    rate_per_second: policy.ratePerSecond,
    canary:
      canary === undefined
        ? null
        : { stages: canary.stages, watch_seconds: canary.watchMs / 1000, stop_percent: canary.stopPercent },
  };
}

/** Who acts in the name of a policy. */
export function actorOfPolicy(name: string): string {
  return `policy:${name}`;
}

/** What decides the next step of a policy. */
export type PolicyRow = PolicyFacts &
  Readonly<{
    name: string;
    redriveId: string | null;
    failures: number;
    /** Of its redrive. */
    redriveReason: string | null;
    delay: RetryDelay;
    hasDue: boolean;
  }>;

type DbRow = Readonly<{
  name: string;
  state: PolicyState;
  isConfigured: boolean;
  definition: PolicyDefinition;
  redriveId: string | null;
  failures: number;
  redriveState: RedriveState | null;
  redriveReason: string | null;
  hasReceipt: boolean;
  selected: number;
  isStoppedByCanary: boolean;
  isPauseOver: boolean;
  roundAgeMs: number;
  hasDue: boolean;
}>;

/** The time for its next attempt has come. */
export const isPolicyDue: Sql = sql`t.next_attempt_at <= clock_timestamp() AND t.status = 'PENDING'`;

const columns: Sql = sql`
  p.name, p.state, p.place IS NOT NULL AS "isConfigured", p.definition, p.redrive_id AS "redriveId", p.failures,
  r.state AS "redriveState", r.state_reason AS "redriveReason", r.receipt IS NOT NULL AS "hasReceipt",
  COALESCE((r.counts->>'selected')::int, 0) AS selected,
  COALESCE(r.stopped_by = 'canary', false) AS "isStoppedByCanary",
  COALESCE(p.not_before <= clock_timestamp(), true) AS "isPauseOver",
  COALESCE(extract(epoch FROM clock_timestamp() - p.round_at) * 1000, 1e12)::float8 AS "roundAgeMs",
  EXISTS (SELECT 1 FROM dlq.dlq_messages t WHERE t.retry_policy = p.name AND ${isPolicyDue}) AS "hasDue"`;

/** Policies with something to do: configured ones, and those whose last round is open. */
export async function listWorkingPolicies(db: Queryable): Promise<readonly PolicyRow[]> {
  const rows = await db.query<DbRow>(sql`
    SELECT ${columns} FROM dlq.retry_policies p LEFT JOIN dlq.redrives r ON r.id = p.redrive_id
    WHERE p.place IS NOT NULL OR p.redrive_id IS NOT NULL
    ORDER BY p.place NULLS LAST, p.name`);
  return rows.map(policyOf);
}

/**
 * Locks the policy, then the redrive of its open round; whoever changes the state of a policy or its round does so
 * first. Null if there is no such policy.
 */
export async function lockPolicy(tx: Queryable, name: string): Promise<PolicyRow | null> {
  const [locked] = await tx.query<{ redriveId: string | null }>(sql`
    SELECT redrive_id AS "redriveId" FROM dlq.retry_policies WHERE name = ${name} FOR NO KEY UPDATE`);
  if (locked === undefined) return null;
  await tx.query(sql`SELECT 1 FROM dlq.redrives WHERE id = ${locked.redriveId} FOR NO KEY UPDATE`);
  // A statement of its own: it sees what former holders of the locks have committed.
  const [row] = await tx.query<DbRow>(sql`
    SELECT ${columns} FROM dlq.retry_policies p LEFT JOIN dlq.redrives r ON r.id = p.redrive_id
    WHERE p.name = ${name}`);
  return row === undefined ? null : policyOf(row);
}

function policyOf(row: DbRow): PolicyRow {
  const delay = { delayMs: row.definition.delay_seconds * 1000, backoff: row.definition.backoff };
  // The clock of the database may have been set back.
  const isGathered = row.roundAgeMs < 0 || row.roundAgeMs >= gatherMs(delay);
  return {
    name: row.name,
    state: row.state,
    isConfigured: row.isConfigured,
    redriveId: row.redriveId,
    failures: row.failures,
    redriveReason: row.redriveReason,
    delay,
    hasDue: row.hasDue,
    round: row.redriveId === null ? null : roundOf(row),
    isRested: row.isPauseOver && isGathered,
  };
}

function roundOf({ redriveState, hasReceipt, selected, isStoppedByCanary }: DbRow): RoundRedrive | 'gone' {
  if (redriveState === null) return 'gone';
  return { state: redriveState, hasReceipt, selected, isStoppedByCanary };
}

export function policyNotFound(name: string): AppError {
  return new AppError('SYS_DLQ_NOT_FOUND', 'not_found', `retry policy not found: ${name}`);
}
