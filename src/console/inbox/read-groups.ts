import type { NameFilter } from '../../kernel/access/scope.ts';
import type { InboxGroup, InboxKind, InboxSlice } from '../../kernel/inbox/inbox-group.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { InboxPart } from '../../platform/work/inbox-part.ts';

export type PartDeps = Readonly<{
  db: Database;
  parts: readonly InboxPart[];
  onError: (slice: InboxSlice, error: unknown) => void;
}>;

export type ReadGroups = Readonly<{
  groups: readonly (InboxGroup & Readonly<{ part: InboxPart }>)[];
  /** Parts that failed or took too long. */
  unavailable: readonly InboxSlice[];
  /** Parts that have more groups than were read. */
  partial: readonly InboxSlice[];
}>;

/** A part that takes longer is left out of the answer. */
const partMs = 3000;

/** One part after the other, each in a short transaction: one that fails does not take the others with it. */
export async function readGroups(
  { db, parts, onError }: PartDeps,
  kindsOf: (part: InboxPart) => ReadonlyMap<InboxKind, NameFilter>,
): Promise<ReadGroups> {
  const groups: (InboxGroup & Readonly<{ part: InboxPart }>)[] = [];
  const unavailable = new Set<InboxSlice>();
  const partial = new Set<InboxSlice>();
  for (const part of parts) {
    const asked = kindsOf(part);
    if (asked.size === 0) continue;
    try {
      const found = await withinTime(db, (tx) => part.read(tx, asked));
      for (const group of found.groups) groups.push({ ...group, part });
      if (found.isPartial) partial.add(part.slice);
    } catch (error) {
      onError(part.slice, error);
      unavailable.add(part.slice);
    }
  }
  return { groups, unavailable: [...unavailable], partial: [...partial] };
}

export async function withinTime<T>(db: Database, read: (tx: Queryable) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.query(sql`SELECT set_config('statement_timeout', ${String(partMs)}, true)`);
    return read(tx);
  });
}
