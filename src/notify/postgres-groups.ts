import assert from 'node:assert/strict';
import { maskBeginning, type Masks } from '../kernel/protect/protection.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { unnestRows } from '../platform/postgres/unnest-rows.ts';
import { sql } from '../platform/postgres/sql.ts';
import type { Group, GroupName, NotifyEvent, Sample } from './grouping.ts';
import { MAX_ITEM_ID, MAX_SUBJECT, MAX_SUMMARY } from './message.ts';
import { oneLine } from './one-line.ts';

/** The group of one notifier. */
export type NotifierGroup = Readonly<{ notifier: string; name: GroupName; group: Group }>;

const lockKey = 7_233_004_118;

/**
 * Takes a lock to the end of the transaction, so that only one process changes groups, and later statements see what
 * the previous one has written. The lease ensures that as well, except for a process that was paused.
 */
export async function beginRound(tx: Queryable): Promise<Readonly<{ nowMs: number }>> {
  await tx.query(sql`SELECT pg_advisory_xact_lock(${lockKey})`);
  const [row] = await tx.query<{ now: Date }>(sql`SELECT clock_timestamp() AS now`);
  assert.ok(row);
  return { nowMs: row.now.getTime() };
}

/** How texts about a group are shown. */
export type MasksOf = (name: GroupName) => Masks;

/** Blanks of it are left out, and the rest is cut. */
const shownSummary = 2 * MAX_SUMMARY;

type EventRow = Readonly<{
  slice: string;
  kind: string;
  subject: string;
  item_id: string;
  summary: string;
  at: Date;
}>;

/** Deletes and returns the oldest events. Events that are committed later are taken in a later round. */
export async function takeEvents(
  tx: Queryable,
  limit: number,
  masksOf: MasksOf,
): Promise<readonly NotifyEvent[]> {
  const rows = await tx.query<EventRow>(sql`
    WITH picked AS MATERIALIZED (
      SELECT id FROM platform.notify_events ORDER BY id LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ), taken AS (
      DELETE FROM platform.notify_events e USING picked WHERE e.id = picked.id
      RETURNING e.id, left(e.slice, 100) AS slice, left(e.kind, 100) AS kind, left(e.subject, 1000) AS subject,
                left(e.item_id, 1000) AS item_id, left(e.summary, 2000) AS summary, e.at
    )
    SELECT slice, kind, subject, item_id, summary, at FROM taken ORDER BY id`);
  return rows.map((row) => ({
    slice: row.slice,
    kind: row.kind,
    subject: oneLine(row.subject, MAX_SUBJECT),
    itemId: oneLine(row.item_id, MAX_ITEM_ID),
    summary: oneLine(maskBeginning(masksOf(row), row.summary, shownSummary), MAX_SUMMARY),
    atMs: row.at.getTime(),
  }));
}

type GroupRow = Readonly<{
  notifier: string;
  slice: string;
  kind: string;
  subject: string;
  told_at: Date;
  held_count: number;
  held_first_at: Date | null;
  held_last_at: Date | null;
  held_samples: readonly Sample[];
}>;

const columns = sql`
  g.notifier, g.slice, g.kind, g.subject, g.told_at, g.held_count::float8 AS held_count, g.held_first_at,
  g.held_last_at, g.held_samples`;

export async function findGroups(
  tx: Queryable,
  notifiers: readonly string[],
  names: readonly GroupName[],
): Promise<readonly NotifierGroup[]> {
  if (names.length === 0) return [];
  const wanted = unnestRows(sql`wanted`, names, [
    [sql`slice`, sql`text[]`, ({ slice }) => slice],
    [sql`kind`, sql`text[]`, ({ kind }) => kind],
    [sql`subject`, sql`text[]`, ({ subject }) => subject],
  ]);
  const rows = await tx.query<GroupRow>(sql`
    SELECT ${columns} FROM unnest(${notifiers}::text[]) AS who (notifier) CROSS JOIN ${wanted}
    JOIN platform.notify_groups g USING (notifier, slice, kind, subject)`);
  return rows.map(groupOf);
}

export type Cooldown = Readonly<{ notifier: string; cooldownMs: number }>;

/** Groups whose cooldown has ended, the oldest first. */
export async function findEnded(
  tx: Queryable,
  cooldowns: readonly Cooldown[],
  { nowMs, limit }: Readonly<{ nowMs: number; limit: number }>,
): Promise<readonly NotifierGroup[]> {
  const ends = unnestRows(sql`ends`, cooldowns, [
    [sql`notifier`, sql`text[]`, ({ notifier }) => notifier],
    [sql`told_before`, sql`timestamptz[]`, ({ cooldownMs }) => new Date(nowMs - cooldownMs)],
  ]);
  const rows = await tx.query<GroupRow>(sql`
    SELECT ${columns} FROM ${ends} JOIN platform.notify_groups g USING (notifier)
    WHERE g.told_at <= ends.told_before
    ORDER BY g.told_at
    LIMIT ${limit}`);
  return rows.map(groupOf);
}

/** Up to five notifiers with pending events that are not configured here. */
export async function findUnknownNotifiers(
  db: Queryable,
  known: readonly string[],
): Promise<readonly string[]> {
  const rows = await db.query<{ notifier: string }>(sql`
    SELECT DISTINCT notifier FROM platform.notify_groups
    WHERE held_count > 0 AND notifier <> ALL (${known}::text[])
    ORDER BY notifier
    LIMIT 5`);
  return rows.map(({ notifier }) => notifier);
}

function groupOf(row: GroupRow): NotifierGroup {
  const { notifier, slice, kind, subject } = row;
  const pending =
    row.held_first_at === null || row.held_last_at === null
      ? undefined
      : {
          count: row.held_count,
          firstAtMs: row.held_first_at.getTime(),
          lastAtMs: row.held_last_at.getTime(),
          samples: row.held_samples,
        };
  return {
    notifier,
    name: { slice, kind, subject },
    group: { notifiedAtMs: row.told_at.getTime(), pending },
  };
}

export async function storeGroups(tx: Queryable, groups: readonly NotifierGroup[]): Promise<void> {
  if (groups.length === 0) return;
  const at = (ms: number | undefined): Date | null => (ms === undefined ? null : new Date(ms));
  const changed = unnestRows(sql`changed`, groups, [
    [sql`notifier`, sql`text[]`, ({ notifier }) => notifier],
    [sql`slice`, sql`text[]`, ({ name }) => name.slice],
    [sql`kind`, sql`text[]`, ({ name }) => name.kind],
    [sql`subject`, sql`text[]`, ({ name }) => name.subject],
    [sql`told_at`, sql`timestamptz[]`, ({ group }) => new Date(group.notifiedAtMs)],
    [sql`held_count`, sql`bigint[]`, ({ group }) => group.pending?.count ?? 0],
    [sql`held_first_at`, sql`timestamptz[]`, ({ group }) => at(group.pending?.firstAtMs)],
    [sql`held_last_at`, sql`timestamptz[]`, ({ group }) => at(group.pending?.lastAtMs)],
    [sql`held_samples`, sql`jsonb[]`, ({ group }) => JSON.stringify(group.pending?.samples ?? [])],
  ]);
  await tx.query(sql`
    INSERT INTO platform.notify_groups
      (notifier, slice, kind, subject, told_at, held_count, held_first_at, held_last_at, held_samples)
    SELECT notifier, slice, kind, subject, told_at, held_count, held_first_at, held_last_at, held_samples FROM ${changed}
    ON CONFLICT (notifier, slice, kind, subject) DO UPDATE
    SET told_at = EXCLUDED.told_at, held_count = EXCLUDED.held_count, held_first_at = EXCLUDED.held_first_at,
        held_last_at = EXCLUDED.held_last_at, held_samples = EXCLUDED.held_samples`);
}

export async function removeGroups(
  tx: Queryable,
  groups: readonly Pick<NotifierGroup, 'notifier' | 'name'>[],
): Promise<void> {
  if (groups.length === 0) return;
  const ended = unnestRows(sql`ended`, groups, [
    [sql`notifier`, sql`text[]`, ({ notifier }) => notifier],
    [sql`slice`, sql`text[]`, ({ name }) => name.slice],
    [sql`kind`, sql`text[]`, ({ name }) => name.kind],
    [sql`subject`, sql`text[]`, ({ name }) => name.subject],
  ]);
  await tx.query(sql`
    DELETE FROM platform.notify_groups g USING ${ended}
    WHERE (g.notifier, g.slice, g.kind, g.subject) = (ended.notifier, ended.slice, ended.kind, ended.subject)`);
}
