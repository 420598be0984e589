import type { Act } from '../../../kernel/audit/act.ts';
import type { NameFilter } from '../../../kernel/access/scope.ts';
import { AppError } from '../../../kernel/errors.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { notify } from '../../../platform/work/wake.ts';
import type { Payloads } from '../../domain/payloads.ts';
import type { RedriveKind } from '../../domain/redrive-kind.ts';
import { tooMany } from './plan-redrive.ts';
import { hashesFor, inScope, isSelectable } from './plan-scope.ts';
import { recordRedrive } from './record-redrive.ts';
import { redrivesChannel, type RedriveFilter, type RedriveOptions } from './redrives-table.ts';

export type CreateDeps = Readonly<{
  db: Database;
  makeId: () => string;
  maxItems: number;
  payloads: Payloads;
}>;

export type NewRedrive = Readonly<{
  kind: RedriveKind;
  filter: RedriveFilter;
  options: RedriveOptions;
  actor: string;
  reason: string;
  act: Act;
  /** The topics that its planner may select. */
  scopes?: readonly NameFilter[];
  /** The retry policy that makes it. */
  policy?: string;
}>;

/** Stores the redrive; the process that takes its lease makes the plan. */
export async function createRedrive(deps: CreateDeps, redrive: NewRedrive): Promise<string> {
  const { db, makeId, maxItems } = deps;
  await requireRoom(db);
  const hashes = await hashesFor(deps, redrive);
  const [selection] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM (
      SELECT 1 FROM dlq.dlq_messages t WHERE ${inScope(redrive, hashes)} AND ${isSelectable(redrive)} LIMIT ${maxItems + 1}) AS selected`);
  if ((selection?.count ?? 0) > maxItems)
    throw new AppError('SYS_DLQ_TOO_MANY_MESSAGES', 'semantic', tooMany(maxItems));
  return db.transaction((tx) => insertRedrive(tx, makeId(), redrive));
}

/** A plan may have a million items, and keeps them for a month. */
const maxPlans = 100;

/** People see their plans; a script that plans without starting is stopped. Policies start each plan of theirs. */
async function requireRoom(db: Queryable): Promise<void> {
  const [row] = await db.query<{ plans: number }>(sql`
    SELECT count(*)::int AS plans FROM dlq.redrives
    WHERE state IN ('planning', 'planned') AND policy IS NULL`);
  if ((row?.plans ?? 0) < maxPlans) return;
  const message = `there are ${maxPlans} plans that were not started; start or cancel some of them`;
  throw new AppError('SYS_DLQ_TOO_MANY_PLANS', 'semantic', message);
}

export async function insertRedrive(tx: Queryable, id: string, redrive: NewRedrive): Promise<string> {
  const { kind, filter, options, actor, reason, policy = null } = redrive;
  await tx.query(sql`
    INSERT INTO dlq.redrives (id, kind, filter, options, actor, reason, policy)
    VALUES (${id}, ${kind}, ${JSON.stringify(filter)}::jsonb, ${JSON.stringify(options)}::jsonb, ${actor}, ${reason}, ${policy})`);
  await recordRedrive(tx, redrive.act, {
    id,
    items: 0,
    detail: { change: 'planned', kind, ...shown(filter) },
  });
  await notify(tx, redrivesChannel);
  return id;
}

/** A key and a text to search for may be taken from payloads, so only their presence is recorded. */
function shown({ key, text, ids, ...filter }: RedriveFilter): Readonly<Record<string, unknown>> {
  return {
    filter: {
      ...filter,
      ...(key === undefined ? {} : { by_key: true }),
      ...(text === undefined ? {} : { by_text: true }),
      ...(ids === undefined ? {} : { ids: ids.length }),
    },
  };
}
