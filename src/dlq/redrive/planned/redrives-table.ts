import type { NameFilter } from '../../../kernel/access/scope.ts';
import { AppError } from '../../../kernel/errors.ts';
import type { Lease } from '../../../kernel/lease.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import type { WorkTable } from '../../../platform/work/work.ts';
import type { Canary } from '../../domain/canary.ts';
import type { RedriveState } from '../../domain/redrive.ts';
import type { Status } from '../../domain/message.ts';
import type { RedriveKind } from '../../domain/redrive-kind.ts';

/** One process at a time plans or runs a redrive: the one that holds the lease of its row. */
export const redrives: WorkTable = {
  slice: 'dlq',
  table: sql`dlq.redrives`,
  key: sql`id`,
  keyArray: sql`uuid[]`,
};

/** Wakes the processes that plan and run redrives. */
export const redrivesChannel = 'dlq_redrives';

/** The fields as they were sent. */
export type RedriveFilter = Readonly<{
  topic?: string;
  status?: readonly Status[];
  fingerprint?: string;
  error_class?: string;
  key?: string;
  consumer_group?: string;
  text?: string;
  since?: string;
  until?: string;
  ids?: readonly string[];
  /** The messages of a retry policy that are due, up to this one. */
  policy?: string;
  due_until?: string;
  due_until_id?: string;
}>;

export type RedriveOptions = Readonly<{
  /** Null: without a limit. */
  rate_per_second: number | null;
  order: 'key' | 'none';
  /** Takes DEAD messages, and those without an attempt left, with a new budget. Missing in older redrives: false. */
  reopen?: boolean;
  /** Missing in older redrives: none. */
  canary?: Canary | null;
}>;

/** A redrive that this process has claimed. */
export type LeasedRedrive = Readonly<{
  id: string;
  kind: RedriveKind;
  state: RedriveState;
  filter: RedriveFilter;
  options: RedriveOptions;
  actor: string;
  /** Who started or resumed it last; null before. */
  startedBy?: string | null;
  /** Original topics and targets of its messages; null before the plan. */
  topics?: readonly string[] | null;
  /** The topics that its planner may select: each of the filters must let a topic through. */
  scopes?: readonly NameFilter[];
  reason: string;
  isPlanned: boolean;
  lease: Lease;
}>;

/**
 * Locks the redrive's row, and checks that it is still in this state and leased by us. A change of state waits for the
 * lock: once it has been answered, nothing that needs the former state happens any more.
 */
export async function holdRedrive(
  tx: Queryable,
  { id, lease }: Pick<LeasedRedrive, 'id' | 'lease'>,
  { state, lock }: Readonly<{ state: RedriveState; lock: Sql }>,
): Promise<HeldRedrive | null> {
  const [held] = await tx.query<HeldRedrive>(sql`
    SELECT CASE WHEN ${stageCount} > 0 THEN COALESCE(r.stage, 1) END AS stage,
           COALESCE(COALESCE(r.stage, 1) <= ${stageCount}, false) AS "isStaged"
    FROM dlq.redrives r
    WHERE r.id = ${id} AND r.state = ${state} AND r.lease_epoch = ${lease.epoch} ${lock}`);
  return held ?? null;
}

/** The stage of its canary; null without one. While it is staged, only messages that a stage has drawn are sent. */
export type HeldRedrive = Readonly<{ stage: number | null; isStaged: boolean }>;

/** NULL without a canary. */
const stageCount: Sql = sql`jsonb_array_length(r.options #> '{canary,stages}')`;

/** Null: without a limit. It may change while the redrive runs. */
export async function readRate(db: Queryable, id: string): Promise<number | null> {
  const [row] = await db.query<{ rate: number | null }>(sql`
    SELECT (options->>'rate_per_second')::float8 AS rate FROM dlq.redrives WHERE id = ${id}`);
  return row?.rate ?? null;
}

export const sharedLock: Sql = sql`FOR SHARE`;
export const exclusiveLock: Sql = sql`FOR UPDATE`;

/** Nobody works on the item, and it has no outcome. */
export const isWaiting: Sql = sql`(i.outcome IS NULL AND i.claim_epoch IS NULL)`;
export const isInFlight: Sql = sql`(i.outcome IS NULL AND i.claim_epoch IS NOT NULL)`;

export function redriveNotFound(id: string): AppError {
  return new AppError('SYS_DLQ_NOT_FOUND', 'not_found', `redrive not found: ${id}`);
}
