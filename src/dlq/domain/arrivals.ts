import { readSha256, type DeadLetter } from './dead-letter.ts';
import { namedAttempt, traceLineage, type KnownMessage } from './lineage.ts';
import type { MessageState, Status } from './message.ts';
import type { LookupHashes } from './payloads.ts';

/**
 * Plans what a batch of dead letters changes: which are new messages, which are known messages that failed again, and
 * which were stored before. The caller has locked the known messages and writes the plan in the transaction that
 * moves the position.
 */
export type KnownRow = KnownMessage &
  Readonly<{ id: string; epoch: bigint; isArchived: boolean; isSealed: boolean }>;

export type NewMessage = Readonly<{
  letter: DeadLetter;
  status: Status;
  retryCount: number;
  parentId: string | null;
}>;

export type ChangedMessage = Readonly<{
  row: KnownRow;
  next: MessageState;
  /** The latest failure, whose error replaces the stored one. */
  letter: DeadLetter;
}>;

export type NotedArrival = Readonly<{
  letter: DeadLetter;
  row: KnownRow;
  kind: 'reopened' | 'repeated' | 'late_failure';
  from: MessageState;
  to: MessageState;
}>;

/** An attempt that came back as a dead letter, for the redrive that made it. */
export type ReturnedAttempt = Readonly<{
  messageId: string;
  /** Null: the newest one. */
  attempt: number | null;
  /** Where the letter says that it failed. */
  topic: string;
  /** It is the message that was published; otherwise only its headers say so, which a consumer may have copied. */
  isSame: boolean;
  letter: DeadLetter;
}>;

export type ArrivalPlan = Readonly<{
  inserts: readonly NewMessage[];
  changes: readonly ChangedMessage[];
  arrivals: readonly NotedArrival[];
  returned: readonly ReturnedAttempt[];
  reopened: number;
  folded: number;
  reread: number;
}>;

export function planArrivals(
  letters: readonly DeadLetter[],
  known: ReadonlyMap<string, KnownRow>,
  stored: ReadonlySet<bigint>,
  { maxRetries, hashes = null }: Readonly<{ maxRetries: number; hashes?: LookupHashes | null }>,
): ArrivalPlan {
  const inserts: NewMessage[] = [];
  const changes = new Map<string, ChangedMessage>();
  const arrivals: NotedArrival[] = [];
  const returned: ReturnedAttempt[] = [];
  let reread = 0;

  for (const letter of letters) {
    if (stored.has(letter.record.offset)) {
      reread += 1;
      continue;
    }
    const row = letter.lineage === null ? undefined : known.get(letter.lineage.messageId);
    if (row === undefined || letter.lineage === null) {
      if (letter.lineage !== null) returned.push(returnOf(letter, letter.lineage, { isSame: false }));
      inserts.push({ letter, status: 'PENDING', retryCount: 0, parentId: null });
      continue;
    }
    // Several records of one message are applied in the order of their offsets.
    const from = changes.get(row.id)?.next ?? row.state;
    const sha256 = readSha256(letter);
    const lineage = traceLineage(
      { ...row, state: from },
      {
        attempt: letter.lineage.attempt,
        version: letter.lineage.version,
        headerTopic: letter.lineage.headerTopic,
        namesPlace: letter.lineage.matched === 'place',
        originalTopic: letter.originalTopic,
        sha256,
        protectedSha256: hashes?.ofRecord(sha256) ?? null,
      },
    );
    const named = { ...letter.lineage, attempt: namedAttempt(from, letter.lineage.attempt) };
    returned.push(returnOf(letter, named, { isSame: lineage.kind !== 'child' }));
    switch (lineage.kind) {
      case 'child':
        inserts.push(childOf(row.id, letter, lineage.retryCount, maxRetries));
        break;
      case 'late_failure':
        arrivals.push({ letter, row, kind: 'late_failure', from, to: from });
        break;
      case 'repeated':
        arrivals.push({ letter, row, kind: 'repeated', from, to: from });
        changes.set(row.id, { row, next: from, letter });
        break;
      case 'reopened':
        arrivals.push({ letter, row, kind: 'reopened', from, to: lineage.next });
        changes.set(row.id, { row, next: lineage.next, letter });
        break;
    }
  }

  const reopened = arrivals.filter((arrival) => arrival.kind === 'reopened').length;
  return {
    inserts,
    changes: [...changes.values()],
    arrivals,
    returned,
    reopened,
    folded: arrivals.length - reopened,
    reread,
  };
}

function returnOf(
  letter: DeadLetter,
  { messageId, attempt, headerTopic, matched }: NonNullable<DeadLetter['lineage']>,
  known: Readonly<{ isSame: boolean }>,
): ReturnedAttempt {
  const topic = headerTopic ?? letter.originalTopic;
  return { messageId, attempt, topic, isSame: known.isSame || matched !== undefined, letter };
}

/** A child that inherits no attempts is DEAD on arrival: a copied header must not cause an endless loop. */
function childOf(parentId: string, letter: DeadLetter, inherited: number, maxRetries: number): NewMessage {
  const isSpent = inherited >= maxRetries && inherited > 0;
  return { letter, parentId, retryCount: inherited, status: isSpent ? 'DEAD' : 'PENDING' };
}
