import type { Database, Queryable } from '../postgres/database.ts';

/**
 * State that all processes share in a row of the database: circuits and throttles. It is changed under a lock on the
 * row, by a pure decision. A decision that returns the same state writes nothing.
 */
export type SharedRow<State> = Readonly<{
  /**
   * Locks the row and reads the database's clock after the lock was granted. For that the lock must stand in a
   * subquery: `SELECT clock_timestamp() FROM (SELECT … FOR UPDATE) s`. Null where there is no row to change.
   */
  lock: (tx: Queryable) => Promise<LockedRow<State> | null>;
  /** Creates a row that is not stored yet, unless another process has just done so. */
  insert?: (tx: Queryable) => Promise<void>;
  write: (tx: Queryable, state: State, before: State) => Promise<void>;
  isSame?: (one: State, other: State) => boolean;
}>;

export type LockedRow<State> = Readonly<{ state: State; nowMs: number; isStored?: boolean }>;

export type Decide<State, T> = (state: State, nowMs: number) => Readonly<{ state: State; result: T }>;

/** Null where there is no row to change. */
export async function changeRow<State, T>(
  db: Database,
  row: SharedRow<State>,
  decide: Decide<State, T>,
): Promise<Readonly<{ before: State; after: State; result: T; nowMs: number }> | null> {
  const { isSame = Object.is } = row;
  return db.transaction(async (tx) => {
    let locked = await row.lock(tx);
    if (locked === null) return null;
    let decision = decide(locked.state, locked.nowMs);
    if (locked.isStored === false && row.insert !== undefined && !isSame(locked.state, decision.state)) {
      // There was no row to lock. The process that inserts it first decides first.
      await row.insert(tx);
      locked = await row.lock(tx);
      if (locked === null) return null;
      decision = decide(locked.state, locked.nowMs);
    }
    const { state: before, nowMs } = locked;
    const { state: after, result } = decision;
    if (!isSame(before, after)) await row.write(tx, after, before);
    return { before, after, result, nowMs };
  });
}
