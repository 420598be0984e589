import type { Act } from '../../kernel/audit/act.ts';
import { AppError } from '../../kernel/errors.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';

export type View = Readonly<{
  id: string;
  owner: string;
  ownerName: string;
  name: string;
  url: string;
  isShared: boolean;
}>;

export type ViewContent = Pick<View, 'name' | 'url' | 'isShared'>;

const maxViews = 100;
const maxShared = 1000;

const columns: Sql = sql`v.id, v.owner, v.owner_name AS "ownerName", v.name, v.url, v.shared AS "isShared"`;

/** The own ones, then what others share, each by name. */
export async function listViews(
  db: Queryable,
  { owner, withShared }: Readonly<{ owner: string; withShared: boolean }>,
): Promise<readonly View[]> {
  return db.query<View>(sql`
    (SELECT ${columns} FROM console.views v WHERE v.owner = ${owner} ORDER BY v.name, v.id LIMIT ${maxViews})
    UNION ALL
    (SELECT ${columns} FROM console.views v WHERE v.shared AND v.owner <> ${owner} AND ${withShared}
     ORDER BY v.name, v.id LIMIT ${maxShared})`);
}

/** A name is used once by each owner; the same view again is the one that there is. */
export async function addView(db: Database, act: Act, content: ViewContent): Promise<View> {
  const { id: owner, name: ownerName } = act.actor;
  return inTurn(db, owner, async (tx) => {
    const [known] = await tx.query<View>(sql`
      SELECT ${columns} FROM console.views v WHERE v.owner = ${owner} AND v.name = ${content.name}`);
    if (known?.url === content.url && known.isShared === content.isShared) return known;
    if (known !== undefined) throw nameTaken(known);
    const [counted] = await tx.query<{ count: number }>(
      sql`SELECT count(*)::int AS count FROM console.views v WHERE v.owner = ${owner}`,
    );
    if ((counted?.count ?? 0) >= maxViews)
      throw new AppError(
        'SYS_CONSOLE_TOO_MANY_VIEWS',
        'conflict',
        `nobody keeps more than ${maxViews} views`,
      );
    const [view] = await tx.query<View>(sql`
      INSERT INTO console.views AS v (owner, owner_name, name, url, shared)
      VALUES (${owner}, ${ownerName}, ${content.name}, ${content.url}, ${content.isShared})
      RETURNING ${columns}`);
    if (view === undefined) throw new Error('the view was not stored');
    await record(tx, act, { view, change: 'add' });
    return view;
  });
}

export async function changeView(
  db: Database,
  act: Act,
  { id, content }: Readonly<{ id: string; content: Partial<ViewContent> }>,
): Promise<View> {
  return inTurn(db, act.actor.id, async (tx) => {
    const before = await findOwn(tx, act.actor.id, id);
    const { name, url, isShared } = { ...before, ...content };
    if (name === before.name && url === before.url && isShared === before.isShared) return before;
    const [other] = await tx.query<View>(sql`
      SELECT ${columns} FROM console.views v WHERE v.owner = ${before.owner} AND v.name = ${name} AND v.id <> ${id}`);
    if (other !== undefined) throw nameTaken(other);
    const [view = before] = await tx.query<View>(sql`
      UPDATE console.views v SET name = ${name}, url = ${url}, shared = ${isShared} WHERE v.id = ${id}
      RETURNING ${columns}`);
    await record(tx, act, { view, change: 'change' });
    return view;
  });
}

export async function deleteView(db: Database, act: Act, id: string): Promise<View> {
  return inTurn(db, act.actor.id, async (tx) => {
    const view = await findOwn(tx, act.actor.id, id);
    await tx.query(sql`DELETE FROM console.views v WHERE v.id = ${id}`);
    await record(tx, act, { view, change: 'delete' });
    return view;
  });
}

/** What somebody does to views happens one after the other. */
async function inTurn<T>(db: Database, owner: string, work: (tx: Queryable) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.query(sql`SELECT pg_advisory_xact_lock(hashtextextended(${`console.views ${owner}`}, 0))`);
    return work(tx);
  });
}

/** Views that others share can be seen, not changed; the rest of theirs is not found. */
async function findOwn(tx: Queryable, owner: string, id: string): Promise<View> {
  const [view] = await tx.query<View>(sql`SELECT ${columns} FROM console.views v WHERE v.id = ${id}`);
  if (view === undefined || (view.owner !== owner && !view.isShared))
    throw new AppError('SYS_CONSOLE_NOT_FOUND', 'not_found', `view not found: ${id}`);
  if (view.owner !== owner)
    throw new AppError('SYS_CONSOLE_NOT_OWNER', 'forbidden', `the view is ${view.ownerName}'s`);
  return view;
}

async function record(
  tx: Queryable,
  act: Act,
  { view, change }: Readonly<{ view: View; change: string }>,
): Promise<void> {
  await recordAct(tx, act, {
    resource: `console/views/${view.id}`,
    detail: { change, name: view.name, url: view.url, shared: view.isShared },
  });
}

function nameTaken(view: View): AppError {
  return new AppError('SYS_CONSOLE_CONFLICT', 'conflict', `another view has the name ${view.name}`, {
    current: presentView(view),
  });
}

export function presentView({ id, name, url, isShared, owner, ownerName }: View): object {
  return { id, name, url, shared: isShared, owner, owner_name: ownerName };
}
