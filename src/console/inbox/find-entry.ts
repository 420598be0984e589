import type { Principal } from '../../kernel/access/principal.ts';
import { AppError } from '../../kernel/errors.ts';
import { readClock } from '../../platform/postgres/read-clock.ts';
import { readEntries } from './entries-table.ts';
import { entryId, kindOfEntry } from './entry-id.ts';
import { isVisible, kindsFor } from './inbox-scope.ts';
import { entryOf, goneEntry, type Entry, type InboxDeps } from './list-entries.ts';
import { readGroups } from './read-groups.ts';

/** An entry that the principal may see; out of scope it is not found. One whose items are gone has its stored row. */
export async function findEntry(deps: InboxDeps, principal: Principal, id: string): Promise<Entry> {
  const kind = kindOfEntry(id);
  if (kind === null) throw entryNotFound(id);
  const now = await readClock(deps.db);
  const { groups, unavailable } = await readGroups(deps, (part) => {
    const filter = kindsFor(part, principal).get(kind);
    return filter === undefined ? new Map() : new Map([[kind, filter]]);
  });
  const stored = (await readEntries(deps.db, [id])).get(id) ?? null;
  const group = groups.find((one) => entryId(one) === id);
  if (group !== undefined) return entryOf(deps, { id, group, part: group.part, stored, now });
  if (stored === null) throw unavailable.length > 0 ? notRead(unavailable) : entryNotFound(id);
  const part = deps.parts.find(({ slice, kinds }) => slice === stored.slice && kinds[kind] !== undefined);
  const filter = part === undefined ? undefined : kindsFor(part, principal).get(kind);
  if (part === undefined || filter === undefined || !isVisible(filter, stored.names)) throw entryNotFound(id);
  // Its items may be there all the same.
  if (unavailable.includes(stored.slice)) throw notRead(unavailable);
  return goneEntry(deps, { part, stored, now });
}

function entryNotFound(id: string): AppError {
  return new AppError('SYS_CONSOLE_NOT_FOUND', 'not_found', `inbox entry not found: ${id}`);
}

function notRead(slices: readonly string[]): AppError {
  return new AppError(
    'SYS_CONSOLE_UNAVAILABLE',
    'unavailable',
    `the entries of ${slices.join(', ')} could not be read in time`,
    { retryAfterMs: 1000 },
  );
}
