/**
 * What the guard does with a call, given the row of its step. Calls are not fenced: a paused worker may send late,
 * a network may deliver twice, an undo may overtake its action. One row for both makes that harmless.
 *
 *   (none) ── action ──> done | refused ── undo ──> undone
 *          ── long action ──> working ──> done | refused | void
 *          ── undo ──> void
 *
 * undone and void are final: no action comes after its undo. A long action holds `working` under a lease that its
 * process renews. When that process dies the lease runs out, and then a repetition of the action takes it over, or
 * an undo sets void at once. Both are safe because the lost process can no longer complete: its effect commits in
 * one transaction with `UPDATE … WHERE phase = 'working' AND run = <its run> AND NOT undo_requested`. A deferred action
 * is `working` without anybody who holds it, until somebody completes it in the same way.
 */
export const phases = ['working', 'done', 'refused', 'undone', 'void'] as const;
export type Phase = (typeof phases)[number];

/** How a call ended, as it is told again; the body is JSON text, null for an empty one. */
export type StoredAnswer = Readonly<{ status: number; body: string | null }>;

export type GuardRow = Readonly<{
  phase: Phase;
  isUndoRequested: boolean;
  /** Only a working row has a lease. */
  isLeaseOver: boolean;
  /** Somebody else ends it, at any time: its lease has no end, and nobody holds it. */
  isDeferred: boolean;
  /** Grows with every process that takes a long action over. */
  run: number;
  digest: string | null;
  answer: StoredAnswer | null;
}>;

/** By the database's clock, read when nobody else can change the row any more. */
export type Moment = Readonly<{
  /** The call's deadline is over: it may no longer begin. */
  isLate: boolean;
  /** The saga is older than the retention: that there is no row proves nothing. */
  isForgotten: boolean;
}>;

/** The answers that need no handler and change nothing. */
type Told =
  | Readonly<{ do: 'replay'; answer: StoredAnswer }>
  | Readonly<{ do: 'wait' | 'too_late' | 'forgotten' }>;

export type ActionDecision =
  | Told
  | Readonly<{ do: 'begin' }>
  | Readonly<{ do: 'mismatch' | 'already_undone' | 'no_answer' }>
  /** Begins again what a lost process had begun. */
  | Readonly<{ do: 'take_over'; run: number }>;

export type UndoDecision =
  | Told
  | Readonly<{ do: 'undo'; answer: StoredAnswer | null }>
  | Readonly<{ do: 'nothing_to_undo' | 'make_void' | 'request_undo' }>;

/** `row` is null where the call's own INSERT has just made it. */
export function decideAction(
  { isLate, isForgotten, digest }: Moment & Readonly<{ digest: string | null }>,
  row: GuardRow | null,
): ActionDecision {
  switch (row?.phase) {
    case undefined:
      if (isLate) return { do: 'too_late' };
      return { do: isForgotten ? 'forgotten' : 'begin' };
    case 'done':
    case 'refused':
      if (row.digest !== digest) return { do: 'mismatch' };
      // Only a handler that ended the guard's transaction by itself leaves such a row.
      return row.answer === null ? { do: 'no_answer' } : { do: 'replay', answer: row.answer };
    case 'working':
      // Another body is no reason for a refusal here: the first one may still be done, and nobody would undo it.
      if (!row.isLeaseOver || row.isUndoRequested || row.digest !== digest) return { do: 'wait' };
      return isLate ? { do: 'too_late' } : { do: 'take_over', run: row.run };
    case 'undone':
    case 'void':
      return { do: 'already_undone' };
  }
}

/** `row` is null where the call's own INSERT has just made it, as void. */
export function decideUndo({ isLate, isForgotten }: Moment, row: GuardRow | null): UndoDecision {
  switch (row?.phase) {
    case undefined:
      if (isLate) return { do: 'too_late' };
      return { do: isForgotten ? 'forgotten' : 'nothing_to_undo' };
    case 'done':
      return isLate ? { do: 'too_late' } : { do: 'undo', answer: row.answer };
    case 'working':
      if (row.isUndoRequested && !row.isLeaseOver) return { do: 'wait' };
      if (isLate) return { do: 'too_late' };
      // Where no process works at it, there is nobody to be waited for.
      return { do: row.isLeaseOver || row.isDeferred ? 'make_void' : 'request_undo' };
    case 'refused':
    case 'void':
      return { do: 'nothing_to_undo' };
    case 'undone':
      return row.answer === null ? { do: 'nothing_to_undo' } : { do: 'replay', answer: row.answer };
  }
}
