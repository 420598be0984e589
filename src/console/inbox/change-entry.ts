import type { Principal } from '../../kernel/access/principal.ts';
import type { Act } from '../../kernel/audit/act.ts';
import { AppError } from '../../kernel/errors.ts';
import { cleanText } from '../../kernel/text.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import { permissionDenied } from '../../platform/http/access/guard-access.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { decideEntry, type Decided, type EntryChange } from './decide-entry.ts';
import { readEntries, type StoredEntry } from './entries-table.ts';
import { stateOf } from './entry-state.ts';
import { findEntry } from './find-entry.ts';
import { isVisible, kindsFor } from './inbox-scope.ts';
import { entryOf, type Entry, type InboxDeps } from './list-entries.ts';
import { presentEntry } from './present-entry.ts';

export type Editor = Readonly<{ principal: Principal; act: Act }>;

/** Changes what is decided about an entry, under its lock and with its row in the audit log. */
export async function changeEntry(
  deps: InboxDeps,
  { principal, act }: Editor,
  { id, change }: Readonly<{ id: string; change: EntryChange }>,
): Promise<Entry> {
  const entry = await findEditable(deps, principal, id);
  const stored = await deps.db.transaction(async (tx) => {
    const row = await lockEntry(tx, entry);
    const { count } = entry.group;
    const isDone = stateOf(entry.group, { ...row.decision, snooze: null }) === 'done';
    const decided = orConflict(deps, { ...entry, stored: row }, () =>
      decideEntry(decidedIn(row), change, { count, isDone }),
    );
    if (decided === null) return row;
    await writeDecision(tx, { id, before: decidedIn(row), after: decided, count });
    await recordAct(tx, act, {
      resource: `console/inbox/${id}`,
      names: entry.group.names,
      detail: { change: change.change, kind: entry.group.kind, count },
    });
    return (await readEntries(tx, [id])).get(id) ?? row;
  });
  return refreshed(deps, entry, stored);
}

/** Out of sight it is not found; to see it is not enough. */
export async function findEditable(deps: InboxDeps, principal: Principal, id: string): Promise<Entry> {
  const entry = await findEntry(deps, principal, id);
  const filter = kindsFor(entry.part, principal, 'console:entries:edit').get(entry.group.kind);
  if (filter === undefined || !isVisible(filter, entry.group.names))
    throw permissionDenied(
      `this needs the permission console:entries:edit for ${entry.group.kind}`,
      'console:entries:edit',
    );
  return entry;
}

export function refreshed(
  deps: InboxDeps,
  { id, group, part, state, now }: Entry,
  stored: StoredEntry,
): Entry {
  const entry = entryOf(deps, { id, group, part, stored, now });
  return group.count === 0 ? { ...entry, state } : entry;
}

/** The row of the entry, made if there is none, locked until the end of the transaction. */
export async function lockEntry(tx: Queryable, { id, group, title }: Entry): Promise<StoredEntry> {
  const { kind, slice, place, names, link, count, oldestAt, newestAt } = group;
  await tx.query(sql`
    INSERT INTO console.inbox_entries
      (id, kind, slice, title, place, topics, queues, destinations, workflows, link, item_count, oldest_at, newest_at)
    VALUES (${id}, ${kind}, ${slice}, ${cleanText(title, 1000)}, ${JSON.stringify(place)}::jsonb,
            ${names.topics ?? null}::text[], ${names.queues ?? null}::text[], ${names.destinations ?? null}::text[],
            ${names.workflows ?? null}::text[], ${link}, ${count}, ${oldestAt}, ${newestAt})
    ON CONFLICT (id) DO NOTHING`);
  await tx.query(sql`SELECT 1 FROM console.inbox_entries WHERE id = ${id} FOR UPDATE`);
  if (count > 0) await tx.query(sql`${welcomeBack} WHERE id = ${id} AND gone_at IS NOT NULL`);
  const row = (await readEntries(tx, [id])).get(id);
  if (row === undefined) throw new Error(`the entry ${id} has no row`);
  return row;
}

/** There are items again: what was decided about those that are gone says nothing about them. */
const welcomeBack: Sql = sql`
  UPDATE console.inbox_entries
  SET gone_at = NULL, gone_by = NULL, gone_action = NULL, gone_reason = NULL, back_at = clock_timestamp(),
      snooze_count = NULL, snoozed_by = NULL, snoozed_at = NULL, done_count = NULL, done_by = NULL, done_at = NULL,
      done_reason = NULL`;

function decidedIn({ owner, decision, snoozedBy, doneBy, doneReason }: StoredEntry): Decided {
  return {
    owner,
    snooze: decision.snooze === null ? null : { count: decision.snooze.count, by: snoozedBy ?? '' },
    done: decision.done === null ? null : { by: doneBy ?? '', reason: doneReason ?? '' },
  };
}

type Written = Readonly<{ id: string; before: Decided; after: Decided; count: number }>;

async function writeDecision(tx: Queryable, { id, before, after, count }: Written): Promise<void> {
  const { owner, snooze, done } = after;
  const at = (column: Sql, isKept: boolean, isSet: boolean): Sql =>
    isKept ? column : isSet ? sql`clock_timestamp()` : sql`NULL`;
  const keepsDone = done === before.done;
  await tx.query(sql`
    UPDATE console.inbox_entries
    SET owner = ${owner?.subject ?? null}, owner_name = ${owner?.name ?? null},
        snooze_count = ${snooze?.count ?? null}, snoozed_by = ${snooze?.by ?? null},
        snoozed_at = ${at(sql`snoozed_at`, snooze === before.snooze, snooze !== null)},
        done_count = ${keepsDone ? sql`done_count` : sql`${done === null ? null : count}::bigint`},
        done_by = ${done?.by ?? null}, done_reason = ${done?.reason ?? null},
        done_at = ${at(sql`done_at`, keepsDone, done !== null)}
    WHERE id = ${id}`);
}

/** A conflict says how the entry stands now. */
function orConflict<T>(deps: InboxDeps, entry: Entry, decide: () => T): T {
  try {
    return decide();
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== 'conflict') throw error;
    const now = entry.stored === null ? entry : refreshed(deps, entry, entry.stored);
    throw new AppError(error.code, 'conflict', error.message, { current: presentEntry(deps, now) });
  }
}
