/**
 * A second person approves what is large. A redrive beyond the bound, counted with what the same person has started in
 * the last hour, waits for somebody else with the right to approve: not who planned it, started it or changed it, and
 * not one of their keys. A later change voids the approval, because it was given to what the approver has seen.
 */
export type Approval = Readonly<{
  /** The subject, always that of a user. */
  actor: string;
  at: string;
  reason: string;
}>;

export type Size = Readonly<{
  selected: number;
  /** How many messages the same person has sent or decided about in bulk in the last hour. */
  lastHour: number;
  /** Without approval; null: nothing needs one. */
  bound: number | null;
}>;

export function needsApproval({ selected, lastHour, bound }: Size): boolean {
  return bound !== null && selected > 0 && selected + lastHour > bound;
}

export type People = Readonly<{
  planner: string;
  /** Who changed its options. */
  editors: readonly string[];
  approver: string;
  isUser: boolean;
}>;

/** Why this person may not approve it; null: they may. Each is the person behind a key. */
export function refusalToApprove({ planner, editors, approver, isUser }: People): string | null {
  if (!isUser) return 'only users approve redrives, not keys and services';
  if (approver === planner) return 'whoever planned a redrive cannot approve it';
  return editors.includes(approver) ? 'whoever changed a redrive cannot approve it' : null;
}

/** Why this person may not start it; null: they may. */
export function refusalToStart(
  { selected, lastHour, bound }: Size,
  approver: string | null,
  starter: string,
): string | null {
  if (!needsApproval({ selected, lastHour, bound })) return null;
  if (approver === null) {
    const before = lastHour === 0 ? '' : `, with ${lastHour} more in the last hour`;
    return `a redrive of more than ${bound} messages needs the approval of a second person: this one has ${selected}${before}`;
  }
  return approver === starter ? 'whoever approved a redrive cannot start it' : null;
}
