import type { NameFilter } from '../../../kernel/access/scope.ts';
import type { PageRequest } from '../../../kernel/page.ts';
import type { Listed } from '../../../platform/http/list-route.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { areNamed } from '../../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import type { Approval } from '../../domain/approval.ts';
import type { ItemOutcome } from '../../domain/redrive-item.ts';
import type { RedriveKind } from '../../domain/redrive-kind.ts';
import type { RedriveState } from '../../domain/redrive.ts';
import { dateOrNull, epochMs, exactInstant } from '../../instant.ts';
import type { Receipt } from './end-redrive.ts';
import type { PlanCounts } from './plan-tally.ts';
import {
  isInFlight,
  isWaiting,
  redriveNotFound,
  type RedriveFilter,
  type RedriveOptions,
} from './redrives-table.ts';

export type Redrive = Readonly<{
  id: string;
  /** Counts the changes by people. */
  revision: bigint;
  kind: RedriveKind;
  state: RedriveState;
  stateReason: string | null;
  filter: RedriveFilter;
  options: RedriveOptions;
  actor: string;
  /** Who started or resumed it last. */
  startedBy: string | null;
  approval: Approval | null;
  /** Original topics and targets; null before the plan. */
  topics: readonly string[] | null;
  reason: string;
  /** The retry policy that made it. */
  policy: string | null;
  plan: PlanCounts | null;
  receipt: Receipt | null;
  stage: number | null;
  waitingFor: string | null;
  /** The process that plans or runs it. */
  owner: string | null;
  watchUntil: Date | null;
  frozenAt: Date | null;
  createdAt: Date;
  createdAtExact: string;
  startedAt: Date | null;
  finishedAt: Date | null;
}>;

/** `published` counts the quiet ones too. */
export type Progress = Readonly<Record<ItemOutcome | 'waiting' | 'in_flight' | 'quiet', number>> &
  Readonly<{ perSecond: number; cameBackAfter: number }>;

export type RedriveItem = Readonly<{
  position: number;
  messageId: string;
  target: string;
  outcome: ItemOutcome | null;
  isInFlight: boolean;
  attemptNo: number | null;
  partition: number | null;
  offset: bigint | null;
  reason: string | null;
  settledAt: Date | null;
}>;

const columns: Sql = sql`
  t.id, t.kind, t.revision, t.state, t.state_reason AS "stateReason", t.filter, t.options, t.actor, t.started_by AS "startedBy", t.approval,
  t.topics, t.reason, t.policy, t.counts AS plan, t.receipt,
  t.stage, t.waiting_for AS "waitingFor",
  CASE WHEN t.receipt IS NULL AND t.lease_until > clock_timestamp() THEN t.lease_owner END AS owner, ${epochMs(sql`t.watch_until`)} AS "watchUntil",
  ${epochMs(sql`t.frozen_at`)} AS "frozenAt", ${epochMs(sql`t.created_at`)} AS "createdAt",
  ${exactInstant(sql`t.created_at`)} AS "createdAtExact", ${epochMs(sql`t.started_at`)} AS "startedAt",
  ${epochMs(sql`t.finished_at`)} AS "finishedAt"`;

type TimeField = 'watchUntil' | 'frozenAt' | 'createdAt' | 'startedAt' | 'finishedAt';
type RedriveRow = Omit<Redrive, TimeField> & Readonly<Record<TimeField, number | null>>;

function redriveOf(row: RedriveRow): Redrive {
  return {
    ...row,
    watchUntil: dateOrNull(row.watchUntil),
    frozenAt: dateOrNull(row.frozenAt),
    createdAt: new Date(row.createdAt ?? 0),
    startedAt: dateOrNull(row.startedAt),
    finishedAt: dateOrNull(row.finishedAt),
  };
}

export async function getRedrive(db: Queryable, id: string): Promise<Redrive> {
  const [row] = await db.query<RedriveRow>(sql`SELECT ${columns} FROM dlq.redrives t WHERE t.id = ${id}`);
  if (row === undefined) throw redriveNotFound(id);
  return redriveOf(row);
}

export type RedriveListFilter = Readonly<{
  /** One of these. */
  states?: readonly RedriveState[];
  policy?: string;
  /** Made by a policy, or by a person. */
  automatic?: boolean;
  /** The topics that the caller may see; by default all. */
  names?: NameFilter;
}>;

/** Newest first. Without the parts that can be long: the ids of the filter, exclusions and targets. */
export async function listRedrives(
  db: Queryable,
  filter: RedriveListFilter,
  page: PageRequest,
): Promise<Listed<Redrive>> {
  const isListed = sql`${isInState(filter)} AND ${madeBy(filter)}
    AND ${areNamed(sql`t.topics`, filter.names ?? null)}`;
  const after = page.by === 'keyset' ? page.after : null;
  const isAfter =
    after === null ? sql`true` : sql`(t.created_at, t.id) < (${after[0]}::timestamptz, ${after[1]}::uuid)`;
  const [total] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM dlq.redrives t WHERE ${isListed}`);
  const rows = await db.query<RedriveRow>(sql`
    SELECT ${columns}, t.filter - 'ids' AS filter, jsonb_build_object('selected', t.counts->'selected') AS plan
    FROM dlq.redrives t WHERE ${isAfter} AND ${isListed}
    ORDER BY t.created_at DESC, t.id DESC
    LIMIT ${page.pageSize + 1} OFFSET ${page.by === 'number' ? page.offset : 0}`);
  return {
    items: rows.slice(0, page.pageSize).map(redriveOf),
    count: { total: total?.count ?? 0, isEstimate: false },
    hasNext: rows.length > page.pageSize,
  };
}

function isInState({ states }: RedriveListFilter): Sql {
  return states === undefined ? sql`true` : sql`t.state = ANY(${states}::text[])`;
}

function madeBy({ policy, automatic }: RedriveListFilter): Sql {
  const byName = policy === undefined ? sql`true` : sql`t.policy = ${policy}`;
  if (automatic === undefined) return byName;
  return sql`${byName} AND ${automatic ? sql`t.policy IS NOT NULL` : sql`t.policy IS NULL`}`;
}

/** Long enough for a steady figure, short enough to show a change of pace. */
const rateSeconds = 10;

/** The outcomes of the items so far. */
export async function readProgress(db: Queryable, id: string): Promise<Progress> {
  const count = (where: Sql): Sql => sql`(count(*) FILTER (WHERE ${where}))::int`;
  const [row] = await db.query<Progress>(sql`
    SELECT ${count(isWaiting)} AS waiting, ${count(isInFlight)} AS in_flight,
           ${count(sql`i.outcome = 'published'`)} AS published,
           ${count(sql`i.outcome = 'published' AND i.stage < r.stage`)} AS quiet,
           ${count(sql`i.came_back_at IS NOT NULL AND i.outcome IS DISTINCT FROM 'came_back'`)} AS "cameBackAfter",
           ${count(sql`i.outcome = 'not_published'`)} AS not_published,
           ${count(sql`i.outcome = 'came_back'`)} AS came_back, ${count(sql`i.outcome = 'failed'`)} AS failed,
           ${count(sql`i.outcome = 'unknown'`)} AS unknown, ${count(sql`i.outcome = 'skipped'`)} AS skipped,
           ${count(sql`i.outcome = 'cancelled'`)} AS cancelled, ${count(sql`i.outcome = 'applied'`)} AS applied,
           ${count(sql`i.settled_at > clock_timestamp() - ${rateSeconds} * interval '1 second'`)}::float8
             / ${rateSeconds}::float8 AS "perSecond"
    FROM dlq.redrive_items i JOIN dlq.redrives r ON r.id = i.redrive_id WHERE i.redrive_id = ${id}`);
  return row ?? { ...nothing, perSecond: 0, cameBackAfter: 0 };
}

const nothing = {
  waiting: 0,
  in_flight: 0,
  published: 0,
  quiet: 0,
  not_published: 0,
  came_back: 0,
  failed: 0,
  unknown: 0,
  skipped: 0,
  cancelled: 0,
  applied: 0,
} as const;

export type ItemFilter = Readonly<{ redriveId: string; outcome?: ItemOutcome | 'waiting' | 'in_flight' }>;

/** In the order of positions. */
export async function listItems(
  db: Queryable,
  filter: ItemFilter,
  page: PageRequest,
): Promise<Listed<RedriveItem>> {
  const { redriveId, outcome } = filter;
  await getRedrive(db, redriveId);
  const after = page.by === 'keyset' ? (page.after?.[0] ?? '0') : '0';
  const [total] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM dlq.redrive_items i
    WHERE i.redrive_id = ${redriveId} AND ${isOutcome(outcome)}`);
  const offset = page.by === 'number' ? page.offset : 0;
  const items = await readItems(db, filter, { after, offset, limit: page.pageSize + 1 });
  return {
    items: items.slice(0, page.pageSize),
    count: { total: total?.count ?? 0, isEstimate: false },
    hasNext: items.length > page.pageSize,
  };
}

/** Items after a position, in order. */
export async function readItems(
  db: Queryable,
  { redriveId, outcome }: ItemFilter,
  { after, limit, offset = 0 }: Readonly<{ after: string; limit: number; offset?: number }>,
): Promise<readonly RedriveItem[]> {
  type Row = Omit<RedriveItem, 'settledAt'> & Readonly<{ settledAt: number | null }>;
  const rows = await db.query<Row>(sql`
    SELECT i.position, i.message_id AS "messageId", i.target, i.outcome, ${isInFlight} AS "isInFlight",
           i.attempt_no AS "attemptNo", i.partition, i."offset", i.reason, ${epochMs(sql`i.settled_at`)} AS "settledAt"
    FROM dlq.redrive_items i
    WHERE i.redrive_id = ${redriveId} AND i.position > ${after}::bigint AND ${isOutcome(outcome)}
    ORDER BY i.position
    LIMIT ${limit} OFFSET ${offset}`);
  return rows.map((row) => ({ ...row, settledAt: dateOrNull(row.settledAt) }));
}

function isOutcome(outcome: ItemFilter['outcome']): Sql {
  if (outcome === undefined) return sql`true`;
  if (outcome === 'waiting') return isWaiting;
  if (outcome === 'in_flight') return isInFlight;
  return sql`i.outcome = ${outcome}`;
}
