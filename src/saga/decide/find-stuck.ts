import { longestMatch } from '../../kernel/protect/protection.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Op } from '../domain/saga-state.ts';
import type { Context } from '../domain/settlement.ts';

export const errorClasses = ['refused', 'defect', 'unknown', 'unserved', 'unavailable'] as const;
/** How the last attempt at the stuck step ended. */
export type ErrorClass = (typeof errorClasses)[number];

/** Null matches anything. */
export type StuckFilter = Readonly<{
  workflowName: string | null;
  stepName: string | null;
  op: Op | null;
  errorClass: ErrorClass | null;
  createdFrom: Date | null;
  createdTo: Date | null;
  /** By its last change, which is when it got stuck. */
  stuckFrom: Date | null;
  stuckTo: Date | null;
  sagaIds: readonly string[] | null;
}>;

/** As selected; the epoch changes as soon as anybody acts on the saga. */
export type StuckSaga = Readonly<{ sagaId: string; stepName: string; epoch: bigint }>;

/**
 * Why a saga is not retried. `busy`: another transaction has locked it. `changed`: it is no longer stuck like that.
 * `no_undo`: the step has no undo to call. `not_idempotent`: its service must not be called twice, so an operator has to
 * name the saga by its id. `failed`: an error, which was logged.
 */
export const skipReasons = ['busy', 'changed', 'no_undo', 'not_idempotent', 'failed'] as const;
export type SkipReason = (typeof skipReasons)[number];
export type SkippedSaga = Readonly<{ sagaId: string; why: SkipReason }>;

export type FoundStuck = Readonly<{
  /** Oldest first, up to the limit. */
  sagas: readonly StuckSaga[];
  /** Listed apart, or they would fill the limit on every request. */
  notRetryable: readonly SkippedSaga[];
  /** How many can be retried, counted up to a limit. */
  matched: number;
  /** All stuck sagas were scanned. */
  isAll: boolean;
}>;

export type StuckSample = Readonly<{
  sagaId: string;
  workflowName: string;
  stepName: string;
  op: Op;
  errorClass: ErrorClass | null;
  reason: string;
  createdAt: Date;
  stuckAt: Date;
}>;

export type RetryPreview = Readonly<{
  matched: number;
  isMore: boolean;
  /** How many of these would be skipped. */
  notRetryable: number;
  sample: readonly StuckSample[];
}>;

/** `stepRows`: how many sagas one statement scans. `until`: when the scan ends early. */
export type ScanOptions = Readonly<{
  serviceOf: Context['serviceOf'];
  stepRows?: number;
  until?: AbortSignal;
}>;

/** A preview that takes longer answers with what it has found. */
const scanWithinMs = 10_000;
const countLimit = 10_000;
const sampleSize = 10;

/**
 * The stuck saga `t`, the name and service of its stuck step, and the last attempt at it. Sagas without a definition are
 * left out: an operator acts on each of them separately.
 */
const stuckSagas: Sql = sql`
  FROM saga.saga_states t
  CROSS JOIN LATERAL (
    SELECT d.definition -> 'steps' -> t.stuck_step ->> 'name' AS step_name,
           d.definition -> 'steps' -> t.stuck_step ->> 'service' AS service
    FROM saga.workflow_definitions d WHERE d.hash = t.definition_hash) AS defined
  LEFT JOIN LATERAL (
    SELECT l.answer, l.is_last FROM saga.saga_step_logs l
    WHERE l.saga_id = t.id AND l.step_index = t.stuck_step AND l.action = t.stuck_op
    ORDER BY l.attempt DESC LIMIT 1) AS tried ON true`;

function isMatch(filter: StuckFilter): Sql {
  const { workflowName, stepName, op, errorClass, createdFrom, createdTo, stuckFrom, stuckTo } = filter;
  return sql`(
    (${workflowName}::text IS NULL OR t.workflow_name = ${workflowName})
    AND (${stepName}::text IS NULL OR defined.step_name = ${stepName})
    AND (${op}::text IS NULL OR t.stuck_op = ${op})
    AND (${errorClass}::text IS NULL OR tried.answer = ${errorClass})
    AND (${createdFrom}::timestamptz IS NULL OR t.created_at >= ${createdFrom})
    AND (${createdTo}::timestamptz IS NULL OR t.created_at < ${createdTo})
    AND (${stuckFrom}::timestamptz IS NULL OR t.updated_at >= ${stuckFrom})
    AND (${stuckTo}::timestamptz IS NULL OR t.updated_at < ${stuckTo})) IS TRUE`;
}

/** The rule of `isSafeToRepeat`: one call of the stuck step may have taken effect. */
const isInDoubt: Sql = sql`
  EXISTS (
    SELECT 1 FROM saga.saga_step_logs l
    WHERE l.saga_id = t.id AND l.step_index = t.stuck_step AND l.action = t.stuck_op
      AND l.answer = 'unknown' AND NOT l.is_unsent)`;

type SeenRow = Readonly<{
  id: string;
  step_name: string | null;
  service: string | null;
  lease_epoch: bigint;
  lacks_undo: boolean;
  is_last: boolean | null;
  is_in_doubt: boolean;
  is_match: boolean;
  is_end: boolean;
}>;
type Match = Pick<SeenRow, 'id' | 'step_name' | 'lease_epoch'> & Readonly<{ flaw: SkipReason | null }>;

/** Why it cannot be retried, or null. */
function flawOf(
  row: SeenRow,
  { sagaIds }: StuckFilter,
  serviceOf: ScanOptions['serviceOf'],
): SkipReason | null {
  if (row.lacks_undo) return 'no_undo';
  if (sagaIds !== null) return null;
  const mayBeRepeated = serviceOf(row.service ?? '')?.isIdempotent === true;
  return row.is_last === true || (row.is_in_doubt && !mayBeRepeated) ? 'not_idempotent' : null;
}

/**
 * Scans the stuck sagas, oldest first, and hands over those that match until `take` has enough. There may be very many:
 * each statement scans a limited number, and the scan ends after a while. Returns whether it saw all.
 */
async function scanStuck(
  db: Queryable,
  {
    filter,
    serviceOf,
    stepRows = 2000,
    until = AbortSignal.timeout(scanWithinMs),
  }: ScanOptions & { filter: StuckFilter },
  take: (found: readonly Match[]) => 'enough' | 'more',
): Promise<boolean> {
  const { sagaIds } = filter;
  for (let after: string | null = null; ;) {
    const rows: readonly SeenRow[] = await db.query<SeenRow>(sql`
      WITH seen AS MATERIALIZED (
        SELECT t.id, t.lease_epoch, defined.step_name, defined.service, tried.is_last, ${isInDoubt} AS is_in_doubt,
               tried.is_last IS NULL AND t.stuck_op = 'COMPENSATE' AS lacks_undo, ${isMatch(filter)} AS is_match
        ${stuckSagas}
        WHERE t.needs_attention AND (${sagaIds}::uuid[] IS NULL OR t.id = ANY(${sagaIds}::uuid[]))
          AND (${after}::uuid IS NULL OR t.id > ${after})
        ORDER BY t.id
        LIMIT ${stepRows}
      ), numbered AS (
        SELECT *, row_number() OVER (ORDER BY id) = ${stepRows} AS is_end FROM seen
      )
      SELECT * FROM numbered WHERE is_match OR is_end ORDER BY id`);
    const found = rows
      .filter((row) => row.is_match)
      .map((row) => ({ ...row, flaw: flawOf(row, filter, serviceOf) }));
    const isEnough = take(found) === 'enough';
    const last = rows.at(-1);
    if (last?.is_end !== true) return true;
    if (isEnough || until.aborted) return false;
    after = last.id;
  }
}

export async function findStuck(
  db: Queryable,
  filter: StuckFilter,
  limit: number,
  options: ScanOptions,
): Promise<FoundStuck> {
  const sagas: StuckSaga[] = [];
  const notRetryable: SkippedSaga[] = [];
  let matched = 0;
  const isAll = await scanStuck(db, { ...options, filter }, (found) => {
    for (const { id: sagaId, step_name: stepName, lease_epoch: epoch, flaw: why } of found) {
      if (why !== null) {
        if (notRetryable.length < countLimit) notRetryable.push({ sagaId, why });
        continue;
      }
      matched += 1;
      if (sagas.length < limit) sagas.push({ sagaId, stepName: stepName ?? '', epoch });
    }
    return sagas.length >= limit && matched >= countLimit ? 'enough' : 'more';
  });
  return { sagas, notRetryable, matched, isAll };
}

type SampleRow = Readonly<{
  id: string;
  workflow_name: string;
  step_name: string | null;
  stuck_op: Op;
  answer: ErrorClass | null;
  stuck_reason: string | null;
  created_at: Date;
  updated_at: Date;
}>;

export const shownReasonLength = 500;

export async function previewStuck(
  db: Queryable,
  filter: StuckFilter,
  options: ScanOptions,
): Promise<RetryPreview> {
  const first: string[] = [];
  let matched = 0;
  let notRetryable = 0;
  const isAll = await scanStuck(db, { ...options, filter }, (found) => {
    const counted = found.slice(0, countLimit - matched);
    first.push(...counted.slice(0, sampleSize - first.length).map(({ id }) => id));
    notRetryable += counted.filter((row) => row.flaw !== null).length;
    matched += found.length;
    return matched > countLimit ? 'enough' : 'more';
  });
  const sample = await db.query<SampleRow>(sql`
    SELECT t.id, t.workflow_name, defined.step_name, t.stuck_op, tried.answer,
           left(t.stuck_reason, ${shownReasonLength + longestMatch}) AS stuck_reason, t.created_at, t.updated_at
    ${stuckSagas}
    WHERE t.id = ANY(${first}::uuid[]) AND t.needs_attention
    ORDER BY t.id`);
  return {
    matched: Math.min(matched, countLimit),
    isMore: !isAll || matched > countLimit,
    notRetryable,
    sample: sample.map(sampleOf),
  };
}

function sampleOf(row: SampleRow): StuckSample {
  return {
    sagaId: row.id,
    workflowName: row.workflow_name,
    stepName: row.step_name ?? '',
    op: row.stuck_op,
    errorClass: row.answer,
    reason: row.stuck_reason ?? '',
    createdAt: row.created_at,
    stuckAt: row.updated_at,
  };
}

export async function isWorkflow(db: Queryable, name: string): Promise<boolean> {
  const rows = await db.query(sql`
    SELECT 1 FROM saga.workflows WHERE name = ${name}
    UNION ALL (SELECT 1 FROM saga.saga_states WHERE workflow_name = ${name} LIMIT 1)`);
  return rows.length > 0;
}
