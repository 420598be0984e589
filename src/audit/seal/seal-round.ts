import { createRound, firstPrevious, hashOfBlock, type AuditEvent, type Block, type Seal } from '../chain.ts';
import { instantText, selectLastSeal, selectRange } from '../events-table.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';

/**
 * Every event up to `seq` was written by a transaction older than `xid`: an event gets its number after its transaction
 * has an id. Once no transaction older than `xid` is running, no event up to `seq` can appear any more.
 */
export type Mark = Readonly<{ seq: number; xid: bigint; atMs: number }>;

/** The last number that an event has, or will have once its transaction commits; and when that was so. */
export type LastNumber = Pick<Mark, 'seq' | 'atMs'>;

export async function readLastNumber(db: Queryable): Promise<LastNumber> {
  const [last] = await db.query<LastNumber>(sql`
    SELECT CASE WHEN is_called THEN last_value::float8 ELSE 0 END AS seq,
           floor(date_part('epoch', statement_timestamp()) * 1000)::float8 AS "atMs"
    FROM audit.events_seq`);
  return last ?? { seq: 0, atMs: 0 };
}

/**
 * The number was read before: reading it later would cover events of transactions that are younger than `xid`. It is an
 * id of its own: `pg_snapshot_xmax` is one past the last transaction that has ended, and a running one may have it.
 */
export async function takeMark(db: Queryable, last: LastNumber): Promise<Mark> {
  const [now] = await db.query<{ xid: bigint }>(sql`
    SELECT pg_current_xact_id()::text::bigint AS xid`);
  return { ...last, xid: now?.xid ?? 0n };
}

export async function isSettled(db: Queryable, { xid }: Mark): Promise<boolean> {
  const [row] = await db.query<{ settled: boolean }>(sql`
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= ${xid}::bigint AS settled`);
  return row?.settled === true;
}

/** Events of one round. */
const roundSize = 1000;

export type SealedRound = Readonly<{ seals: readonly Seal[]; events: readonly AuditEvent[] }>;

/**
 * Seals the next events up to the mark, in one transaction; null if there is nothing to seal. `also` runs in the same
 * transaction. Of two processes that seal at once the second one fails: its blocks do not continue the chain.
 */
export async function sealRound(
  db: Database,
  mark: Mark,
  also: (tx: Queryable, round: SealedRound) => Promise<void>,
): Promise<SealedRound | null> {
  return db.transaction(async (tx) => {
    const last = await selectLastSeal(tx);
    const after = last?.last_seq ?? 0;
    const events = await selectRange(tx, { after, upTo: mark.seq, limit: roundSize });
    if (events.length === 0) return null;
    const round = createRound();
    for (const event of events) round.add(event);
    const seals: Seal[] = [];
    const sealedAt = await readClock(tx);
    for (const part of round.end()) {
      const before = seals.at(-1) ?? last;
      const block: Block = {
        block: (before?.block ?? 0) + 1,
        after_seq: after,
        last_seq: events.at(-1)?.seq ?? after,
        ...part,
        sealed_at: sealedAt,
      };
      const previous = before?.hash ?? firstPrevious;
      seals.push({ ...block, previous, hash: hashOfBlock(previous, block) });
    }
    for (const seal of seals) await insertSeal(tx, seal);
    await also(tx, { seals, events });
    return { seals, events };
  });
}

async function readClock(tx: Queryable): Promise<string> {
  const [row] = await tx.query<{ now: string }>(sql`SELECT ${instantText(sql`clock_timestamp()`)} AS now`);
  return row?.now ?? '';
}

async function insertSeal(tx: Queryable, seal: Seal): Promise<void> {
  await tx.query(sql`
    INSERT INTO audit.seals
      (block, after_seq, last_seq, kept, month, events, rows_sha256, sealed_at, previous, hash)
    VALUES (${seal.block}::bigint, ${seal.after_seq}::bigint, ${seal.last_seq}::bigint, ${seal.kept}, ${seal.month}::date,
            ${seal.events}, decode(${seal.rows_sha256}, 'hex'), ${seal.sealed_at}::timestamptz,
            decode(${seal.previous}, 'hex'), decode(${seal.hash}, 'hex'))`);
}

/** When the oldest event was written that no block has yet; null if all are sealed. */
export async function oldestUnsealedMs(db: Queryable): Promise<number | null> {
  const [row] = await db.query<{ atMs: number }>(sql`
    SELECT date_part('epoch', e.at) * 1000 AS "atMs" FROM audit.events e
    WHERE e.seq > COALESCE((SELECT s.last_seq FROM audit.seals s ORDER BY s.block DESC LIMIT 1), 0)
    ORDER BY e.seq LIMIT 1`);
  return row?.atMs ?? null;
}
