/**
 * What the guard does with a call, given the row of its step. Calls are not fenced: a paused worker may send late, the
 * network may deliver twice, an undo may overtake its action. One row for action and undo makes that harmless.
 *
 *   (none) ── action ──> done | refused ── undo ──> undone
 *          ── long action ──> working ──> done | refused | void
 *          ── undo ──> void
 *
 * undone and void are final: no action follows its undo. A long action is `working` under a lease that its process
 * renews. When that process dies the lease expires; then a repeated call takes the action over, or an undo sets void at
 * once. Both are safe because the lost process can no longer complete it: its effect commits in one transaction with
 * `UPDATE … WHERE phase = 'working' AND run = <its run> AND NOT undo_requested`. A deferred action
 * is `working` without a lease until it is completed in the same way.
 */
export const phases = ['working', 'done', 'refused', 'undone', 'void'] as const;
export type Phase = (typeof phases)[number];

/** The stored answer, repeated for repeated calls; the body is JSON text, null if empty. */
export type StoredAnswer = Readonly<{ status: number; body: string | null }>;

export type GuardRow = Readonly<{
  phase: Phase;
  isUndoRequested: boolean;
  /** Only a working row has a lease. */
  isLeaseOver: boolean;
  /** Completed later by another process: its lease never expires. */
  isDeferred: boolean;
  /** Incremented by every process that takes over a long action. */
  run: number;
  digest: string | null;
  answer: StoredAnswer | null;
}>;

/** By the database's clock, read while the row is locked. */
export type Moment = Readonly<{
  /** The call's deadline has passed: it must not begin. */
  isLate: boolean;
  /** The saga is older than the retention: a missing row proves nothing. */
  isForgotten: boolean;
}>;

/** Answers that call no handler and change nothing. */
type Told =
  | Readonly<{ do: 'replay'; answer: StoredAnswer }>
  | Readonly<{ do: 'wait' | 'too_late' | 'forgotten' }>;

export type ActionDecision =
  | Told
  | Readonly<{ do: 'begin' }>
  | Readonly<{ do: 'mismatch' | 'already_undone' | 'no_answer' }>
  /** Restarts what a lost process had begun. */
  | Readonly<{ do: 'take_over'; run: number }>;

export type UndoDecision =
  | Told
  | Readonly<{ do: 'undo'; answer: StoredAnswer | null }>
  | Readonly<{ do: 'nothing_to_undo' | 'make_void' | 'request_undo' }>;

/** `row` is null if this call has just inserted it. */
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
      // Only a handler that ended the guard's transaction leaves such a row.
      return row.answer === null ? { do: 'no_answer' } : { do: 'replay', answer: row.answer };
    case 'working':
      // Another body is not refused here: the first call may still complete, and would not be undone after a refusal.
      if (!row.isLeaseOver || row.isUndoRequested || row.digest !== digest) return { do: 'wait' };
      return isLate ? { do: 'too_late' } : { do: 'take_over', run: row.run };
    case 'undone':
    case 'void':
      return { do: 'already_undone' };
  }
}

/** `row` is null if this call has just inserted it, as void. */
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
      // If no process works on it, there is nothing to wait for.
      return { do: row.isLeaseOver || row.isDeferred ? 'make_void' : 'request_undo' };
    case 'refused':
    case 'void':
      return { do: 'nothing_to_undo' };
    case 'undone':
      return row.answer === null ? { do: 'nothing_to_undo' } : { do: 'replay', answer: row.answer };
  }
}
