import type { ReleaseReason } from './message.ts';

/**
 * How a message of a redrive ended. `applied` is the end of a bulk decision: the kind of the redrive says which, and
 * unlike what is published it is never in doubt, because message and item change in one transaction. An item without an outcome waits, or is in
 * flight.
 */
export const itemOutcomes = [
  'published',
  'not_published',
  'came_back',
  'failed',
  'unknown',
  'skipped',
  'cancelled',
  'applied',
] as const;
export type ItemOutcome = (typeof itemOutcomes)[number];

/**
 * An outcome is written once, with two exceptions: an attempt in doubt turns out to be published or comes back, and a
 * published message comes back.
 */
export function outcomesBefore(outcome: ItemOutcome): readonly (ItemOutcome | null)[] {
  switch (outcome) {
    case 'published':
      return [null, 'unknown'];
    case 'came_back':
      return [null, 'unknown', 'published'];
    case 'not_published':
    case 'failed':
    case 'unknown':
    case 'skipped':
    case 'cancelled':
    case 'applied':
      return [null];
  }
}

/**
 * The reasons of a release for which the item is skipped: they do not pass by themselves, or, of a message that cannot be
 * decrypted, its redrive must not wait for it.
 */
export function isUnsendable(reason: ReleaseReason): boolean {
  return ['unroutable', 'not_allowed', 'no_value', 'unreadable'].includes(reason);
}

/** Why an item is skipped. */
export const skipReasons = {
  changed: 'changed since the plan',
  behind: 'behind an item with the same key that was not published',
  locked: 'locked by another transaction',
} as const;
export type SkipReason = keyof typeof skipReasons;

/** A waiting item and its message, in the order of positions. */
export type Candidate = Readonly<{
  position: number;
  messageId: string;
  /** Equal for items whose order is kept; null if no order is kept. */
  orderKey: string | null;
  /** The message is as the plan found it: same epoch, and due. */
  isUnchanged: boolean;
  /** An earlier item with its key has a blocking outcome. */
  isBehind: boolean;
  runsAlone: boolean;
}>;

/** What a round does not claim, because somebody else may be working on an earlier message with the same key. */
export type Held = Readonly<{
  positions: ReadonlySet<number>;
  keys: ReadonlySet<string>;
  /** Held too long. */
  givenUp: ReadonlySet<number>;
}>;

export type Choice<One extends Candidate = Candidate> = Readonly<{
  claim: readonly One[];
  skip: readonly Readonly<{ candidate: One; reason: SkipReason }>[];
  /** Left waiting for a later round. */
  waiting: readonly One[];
  /** The next candidate must run alone; the round ends before it, or consists of it. */
  isAloneNext: boolean;
}>;

/** Which of the candidates to claim now. One that must run alone is claimed alone, in its place. */
export function chooseItems<One extends Candidate>(
  candidates: readonly One[],
  held: Held,
  { mayRunAlone }: Readonly<{ mayRunAlone: boolean }>,
): Choice<One> {
  const claim: One[] = [];
  const skip: { candidate: One; reason: SkipReason }[] = [];
  const waiting: One[] = [];
  const blocked = new Set<string>();
  const heldKeys = new Set(held.keys);
  for (const candidate of candidates) {
    const { orderKey } = candidate;
    const reason = skipReasonOf(candidate, held, orderKey !== null && blocked.has(orderKey));
    if (reason !== 'locked' && orderKey !== null && heldKeys.has(orderKey)) waiting.push(candidate);
    else if (reason !== null) {
      skip.push({ candidate, reason });
      if (orderKey !== null) blocked.add(orderKey);
    } else if (held.positions.has(candidate.position)) {
      waiting.push(candidate);
      if (orderKey !== null) heldKeys.add(orderKey);
    } else if (!candidate.runsAlone) claim.push(candidate);
    else if (claim.length === 0 && mayRunAlone)
      return { claim: [candidate], skip, waiting, isAloneNext: true };
    else return { claim, skip, waiting, isAloneNext: true };
  }
  return { claim, skip, waiting, isAloneNext: false };
}

function skipReasonOf(candidate: Candidate, held: Held, isBlocked: boolean): SkipReason | null {
  if (candidate.isBehind || isBlocked) return 'behind';
  if (!candidate.isUnchanged) return 'changed';
  return held.givenUp.has(candidate.position) ? 'locked' : null;
}
