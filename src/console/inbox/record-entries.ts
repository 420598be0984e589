import { dayMs, secondMs } from '../../kernel/duration.ts';
import type { Service } from '../../kernel/service.ts';
import { cleanText } from '../../kernel/text.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { deleteTask } from '../../platform/work/retention-tasks.ts';
import { createRetention, every, type RetentionLog } from '../../platform/work/retention.ts';
import type { Worker } from '../../platform/work/work.ts';
import { entryId } from './entry-id.ts';
import { entryOf, type InboxDeps } from './list-entries.ts';
import { readGroups } from './read-groups.ts';

/**
 * Notes which entries there are, so that those whose items are gone are listed as done, and say so when they come back.
 * Nothing else depends on it: a list is read from the slices. What failed or was not read as a whole is left as it was,
 * because an entry that was not seen may be there all the same.
 */
export function createInboxRecorder(worker: Worker, deps: InboxDeps, log: RetentionLog): Service {
  return createRetention(worker, {
    name: 'console.inbox',
    rounds: [
      {
        schedule: every(15 * secondMs),
        tasks: [{ name: 'entries of the inbox', run: () => recordEntries(deps) }],
        done: 'noted entries of the inbox without items',
        pausePerRound: 20,
      },
      { schedule: every(dayMs / 24), tasks: [oldEntries(deps.db)], done: 'deleted old entries of the inbox' },
    ],
    log,
  });
}

const batchSize = 500;

async function recordEntries(deps: InboxDeps): Promise<Readonly<{ gone: number }>> {
  const { db } = deps;
  const [started] = await db.query<{ at: string }>(sql`SELECT clock_timestamp()::text AS at`);
  const read = await readGroups(
    deps,
    ({ kinds }) => new Map(Object.keys(kinds).map((kind) => [kind as keyof typeof kinds, null])),
  );
  const now = new Date();
  const rows = read.groups.map((group) => {
    const { title } = entryOf(deps, { id: '', group, part: group.part, stored: null, now });
    const { kind, slice, place, names, link, count, oldestAt, newestAt } = group;
    return {
      id: entryId(group),
      kind,
      slice,
      title: cleanText(title, 1000),
      place,
      link,
      count,
      oldest_at: oldestAt,
      newest_at: newestAt,
      topics: null,
      queues: null,
      destinations: null,
      workflows: null,
      ...names,
    };
  });
  for (let from = 0; from < rows.length; from += batchSize)
    await storeEntries(db, rows.slice(from, from + batchSize));
  const gone = await db.transaction((tx) =>
    markGone(tx, {
      present: rows.map(({ id }) => id),
      unread: [...read.unavailable, ...read.partial],
      before: started?.at ?? '-infinity',
    }),
  );
  return { gone };
}

async function storeEntries(db: Queryable, rows: readonly object[]): Promise<void> {
  await db.query(sql`
    INSERT INTO console.inbox_entries AS e
      (id, kind, slice, title, place, topics, queues, destinations, workflows, link, item_count, oldest_at, newest_at)
    SELECT r.id, r.kind, r.slice, r.title, r.place, r.topics, r.queues, r.destinations, r.workflows, r.link, r.count,
           r.oldest_at, r.newest_at
    FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS r
      (id text, kind text, slice text, title text, place jsonb, topics text[], queues text[], destinations text[],
       workflows text[], link text, count bigint, oldest_at timestamptz, newest_at timestamptz)
    ORDER BY r.id
    ON CONFLICT (id) DO UPDATE
    SET title = EXCLUDED.title, place = EXCLUDED.place, link = EXCLUDED.link, item_count = EXCLUDED.item_count,
        oldest_at = EXCLUDED.oldest_at, newest_at = EXCLUDED.newest_at, seen_at = clock_timestamp(),
        back_at = CASE WHEN e.gone_at IS NULL THEN e.back_at ELSE clock_timestamp() END,
        gone_at = NULL, gone_by = NULL, gone_action = NULL, gone_reason = NULL,
        -- What was decided about items that are gone says nothing about new ones.
        snooze_count = CASE WHEN e.gone_at IS NULL THEN e.snooze_count END,
        snoozed_by = CASE WHEN e.gone_at IS NULL THEN e.snoozed_by END,
        snoozed_at = CASE WHEN e.gone_at IS NULL THEN e.snoozed_at END,
        -- LEAST takes no notice of NULL.
        done_count = CASE WHEN e.gone_at IS NULL AND e.done_count IS NOT NULL
                          THEN LEAST(e.done_count, EXCLUDED.item_count) END,
        done_by = CASE WHEN e.gone_at IS NULL THEN e.done_by END,
        done_at = CASE WHEN e.gone_at IS NULL THEN e.done_at END,
        done_reason = CASE WHEN e.gone_at IS NULL THEN e.done_reason END
    WHERE e.gone_at IS NOT NULL OR e.item_count <> EXCLUDED.item_count OR e.title <> EXCLUDED.title
       OR e.newest_at IS DISTINCT FROM EXCLUDED.newest_at OR e.oldest_at IS DISTINCT FROM EXCLUDED.oldest_at`);
}

type Present = Readonly<{ present: readonly string[]; unread: readonly string[]; before: string }>;

/** Entries that were stored after the reading began may have been made by somebody who saw them. */
async function markGone(tx: Queryable, { present, unread, before }: Present): Promise<number> {
  const rows = await tx.query<{ id: string }>(sql`
    UPDATE console.inbox_entries e
    SET gone_at = clock_timestamp(), item_count = 0
    WHERE e.gone_at IS NULL AND e.seen_at < ${before}::timestamptz AND e.first_seen_at < ${before}::timestamptz
      AND e.slice <> ALL(${unread}::text[])
      AND NOT EXISTS (SELECT 1 FROM unnest(${present}::text[]) AS p (id) WHERE p.id = e.id)
    RETURNING e.id`);
  if (rows.length > 0)
    await nameDeciders(
      tx,
      rows.map(({ id }) => id),
    );
  return rows.length;
}

/** How many of the newest events are searched for the one that says who decided. */
const searchedEvents = 2000;

/** The last act about the topics, queues, destinations or workflows of the entry, within the last hour. */
async function nameDeciders(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.query(sql`
    WITH recent AS MATERIALIZED (
      SELECT a.seq, a.actor_id, a.action, left(a.reason, 1000) AS reason, a.topics, a.queues, a.destinations,
             a.workflows
      FROM (SELECT * FROM audit.events ORDER BY seq DESC LIMIT ${searchedEvents}) AS a
      WHERE a.at > clock_timestamp() - interval '1 hour' AND a.outcome IN ('success', 'started')
        AND a.action NOT LIKE 'console:%' AND a.action NOT LIKE '%:view'
    ), named AS (
      SELECT DISTINCT ON (e.id) e.id, recent.actor_id, recent.action, recent.reason
      FROM console.inbox_entries e
      JOIN recent ON recent.action LIKE e.slice || ':%'
        AND (recent.topics && e.topics OR recent.queues && e.queues OR recent.destinations && e.destinations
             OR recent.workflows && e.workflows)
      WHERE e.id = ANY(${ids}::text[])
      ORDER BY e.id, recent.seq DESC
    )
    UPDATE console.inbox_entries e
    SET gone_by = named.actor_id, gone_action = named.action, gone_reason = named.reason
    FROM named WHERE e.id = named.id`);
}

const keepDays = 30;
/** As long as the audit log. */
const keepNotesDays = 400;

/** Deletes entries whose items have been gone for a long time, with their notes. */
function oldEntries(db: Queryable) {
  return deleteTask({ name: 'old entries of the inbox', count: 'entries', batchSize }, async (limit) => {
    const rows = await db.query(sql`
      WITH old AS MATERIALIZED (
        SELECT e.id FROM console.inbox_entries e
        WHERE e.gone_at < clock_timestamp() - ${keepDays} * interval '1 day'
          AND (e.gone_at < clock_timestamp() - ${keepNotesDays} * interval '1 day'
               OR NOT EXISTS (SELECT 1 FROM console.inbox_notes n WHERE n.entry_id = e.id))
        ORDER BY e.gone_at LIMIT ${limit}
        FOR UPDATE SKIP LOCKED
      )
      DELETE FROM console.inbox_entries e USING old WHERE e.id = old.id RETURNING 1`);
    return rows.length;
  });
}
