import { secondMs } from '../../kernel/duration.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Seal } from '../chain.ts';
import { selectLastSeal, selectRange, selectSeals } from '../events-table.ts';
import { checkBlocks, createEventCheck, mayBeDropped, type Dropped, type Finding } from './check-round.ts';

/** A block as it was noted outside the database: in the log of the server, or in the topic of anchors. */
export type Anchor = Readonly<{ block: number; hash: string }>;

export type Verified = Readonly<{
  finding: Finding | null;
  /** How many were checked by this call. */
  blocks: number;
  events: number;
  /** Where the next call continues; null at the end of the chain. */
  nextAfterBlock: number | null;
  head: Readonly<{ block: number; hash: string }> | null;
  unsealed: number;
}>;

/** More than the partitions that the events of one round can be in. */
const roundBlocks = 40;
const eventsPerPage = 1000;

/**
 * Follows the chain from a block on, and compares every block with the events. It ends after some seconds; the next
 * call continues. A block that was removed at the end, together with its events, can be noticed only by an anchor.
 */
export async function verifyChain(
  db: Queryable,
  { afterBlock = 0, anchors = [] }: Readonly<{ afterBlock?: number; anchors?: readonly Anchor[] }>,
  withinMs = 10 * secondMs,
): Promise<Verified> {
  const endsAtMs = performance.now() + withinMs;
  const head = await selectLastSeal(db);
  const dropped = await selectDropped(db);
  let before =
    afterBlock === 0 ? null : ((await selectSeals(db, { after: afterBlock - 1, limit: 1 }))[0] ?? null);
  const done = { blocks: 0, events: 0 };
  let finding = (await checkAnchors(db, anchors)) ?? (afterBlock === 0 ? await checkStart(db) : null);
  while (finding === null) {
    const round = await nextRound(db, before);
    if (round.length === 0) break;
    finding = checkBlocks(before, round);
    if (finding !== null) break;
    const checked = await checkEvents(db, round, dropped);
    finding = checked.finding;
    done.blocks += round.length;
    done.events += checked.events;
    before = round.at(-1) ?? before;
    if (performance.now() >= endsAtMs) break;
  }
  const isAtEnd = finding !== null || (before?.block ?? 0) >= (head?.block ?? 0);
  return {
    finding,
    ...done,
    nextAfterBlock: isAtEnd ? null : (before?.block ?? 0),
    head: head === null ? null : { block: head.block, hash: head.hash },
    unsealed: await countUnsealed(db, head?.last_seq ?? 0),
  };
}

/** The blocks of one round have the same range. */
async function nextRound(db: Queryable, before: Seal | null): Promise<readonly Seal[]> {
  const seals = await selectSeals(db, { after: before?.block ?? 0, limit: roundBlocks });
  const [first] = seals;
  return seals.filter(
    ({ after_seq, last_seq }) => after_seq === first?.after_seq && last_seq === first.last_seq,
  );
}

async function checkEvents(
  db: Queryable,
  round: readonly Seal[],
  dropped: Dropped,
): Promise<Readonly<{ finding: Finding | null; events: number }>> {
  const [first] = round;
  const check = createEventCheck(round, dropped);
  let events = 0;
  for (let after = first?.after_seq ?? 0; ;) {
    const page = await selectRange(db, { after, upTo: first?.last_seq ?? 0, limit: eventsPerPage });
    for (const event of page) check.add(event);
    events += page.length;
    after = page.at(-1)?.seq ?? after;
    if (page.length < eventsPerPage) return { finding: check.end(), events };
  }
}

async function checkStart(db: Queryable): Promise<Finding | null> {
  const rows = await db.query(sql`SELECT 1 FROM audit.events e WHERE e.seq <= 0 LIMIT 1`);
  if (rows.length === 0) return null;
  return { block: 1, problem: 'events_added', message: 'there are events before the first block' };
}

async function checkAnchors(db: Queryable, anchors: readonly Anchor[]): Promise<Finding | null> {
  if (anchors.length === 0) return null;
  const rows = await db.query<Anchor>(sql`
    SELECT s.block::float8 AS block, encode(s.hash, 'hex') AS hash FROM audit.seals s
    WHERE s.block = ANY (${anchors.map(({ block }) => block)}::bigint[])`);
  const hashes = new Map(rows.map(({ block, hash }) => [block, hash]));
  for (const { block, hash } of anchors.toSorted((a, b) => a.block - b.block)) {
    const stored = hashes.get(block);
    if (stored === hash) continue;
    return stored === undefined
      ? { block, problem: 'block_missing', message: `block ${block} is missing: an anchor names it` }
      : { block, problem: 'anchor_differs', message: `block ${block} has another hash than its anchor` };
  }
  return null;
}

async function selectDropped(db: Queryable): Promise<Dropped> {
  const rows = await db.query<Readonly<{ kept: Seal['kept']; month: string; nowMs: number }>>(sql`
    SELECT kept, to_char(begins_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS month,
           date_part('epoch', clock_timestamp()) * 1000 AS "nowMs"
    FROM audit.dropped_months`);
  return new Set(
    rows.filter((one) => mayBeDropped(one, one.nowMs)).map(({ kept, month }) => `${kept} ${month}`),
  );
}

async function countUnsealed(db: Queryable, lastSeq: number): Promise<number> {
  const [row] = await db.query<{ count: number }>(sql`
    SELECT count(*)::float8 AS count FROM audit.events e WHERE e.seq > ${lastSeq}::bigint`);
  return row?.count ?? 0;
}
