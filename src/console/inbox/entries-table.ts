import type { Dimension } from '../../kernel/access/scope.ts';
import type { InboxKind, InboxPlace, InboxSlice } from '../../kernel/inbox/inbox-group.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Decision, Sightings } from './entry-state.ts';

/** A row of `console.inbox_entries`. */
export type StoredEntry = Readonly<{
  id: string;
  kind: InboxKind;
  slice: InboxSlice;
  title: string;
  place: InboxPlace;
  names: Readonly<Partial<Record<Dimension, readonly string[]>>>;
  link: string;
  count: number;
  oldestAt: Date | null;
  newestAt: Date | null;
  seen: Sightings;
  goneBy: string | null;
  goneAction: string | null;
  goneReason: string | null;
  owner: Readonly<{ subject: string; name: string }> | null;
  decision: Decision;
  snoozedBy: string | null;
  snoozedAt: Date | null;
  doneBy: string | null;
  doneAt: Date | null;
  doneReason: string | null;
  notes: number;
}>;

type Row = Omit<StoredEntry, 'names' | 'seen' | 'owner' | 'decision'> &
  Readonly<{
    topics: readonly string[] | null;
    queues: readonly string[] | null;
    destinations: readonly string[] | null;
    workflows: readonly string[] | null;
    firstSeenAt: Date;
    goneAt: Date | null;
    backAt: Date | null;
    owner: string | null;
    ownerName: string | null;
    snoozeCount: number | null;
    doneCount: number | null;
  }>;

const columns: Sql = sql`
  e.id, e.kind, e.slice, e.title, e.place, e.topics, e.queues, e.destinations, e.workflows, e.link,
  e.item_count::float8 AS count, e.oldest_at AS "oldestAt", e.newest_at AS "newestAt",
  e.first_seen_at AS "firstSeenAt", e.gone_at AS "goneAt", e.back_at AS "backAt", e.gone_by AS "goneBy",
  e.gone_action AS "goneAction", e.gone_reason AS "goneReason", e.owner, e.owner_name AS "ownerName",
  e.snooze_count::float8 AS "snoozeCount", e.snoozed_by AS "snoozedBy", e.snoozed_at AS "snoozedAt",
  e.done_count::float8 AS "doneCount", e.done_by AS "doneBy", e.done_at AS "doneAt", e.done_reason AS "doneReason",
  (SELECT count(*)::int FROM console.inbox_notes n WHERE n.entry_id = e.id) AS notes`;

/** The stored rows of these entries. An entry that has not been noted yet has none. */
export async function readEntries(
  db: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, StoredEntry>> {
  const rows = await db.query<Row>(sql`
    SELECT ${columns} FROM console.inbox_entries e WHERE e.id = ANY(${ids}::text[])`);
  return new Map(rows.map((row) => [row.id, entryOf(row)]));
}

/** Entries whose items have gone lately, the newest first. */
export async function listGone(db: Queryable, hours: number, limit: number): Promise<readonly StoredEntry[]> {
  const rows = await db.query<Row>(sql`
    SELECT ${columns} FROM console.inbox_entries e
    WHERE e.gone_at > clock_timestamp() - ${hours}::int * interval '1 hour'
    ORDER BY e.gone_at DESC LIMIT ${limit}`);
  return rows.map(entryOf);
}

function entryOf(row: Row): StoredEntry {
  const { topics, queues, destinations, workflows } = row;
  return {
    ...row,
    names: {
      ...(topics === null ? {} : { topics }),
      ...(queues === null ? {} : { queues }),
      ...(destinations === null ? {} : { destinations }),
      ...(workflows === null ? {} : { workflows }),
    },
    seen: { firstSeenAt: row.firstSeenAt, goneAt: row.goneAt, backAt: row.backAt },
    owner: row.owner === null ? null : { subject: row.owner, name: row.ownerName ?? row.owner },
    decision: {
      snooze: row.snoozeCount === null ? null : { count: row.snoozeCount },
      done: row.doneCount === null || row.doneAt === null ? null : { count: row.doneCount, at: row.doneAt },
    },
  };
}
