import type { DeadLetter } from './dead-letter.ts';
import { traceLineage, type KnownMessage } from './lineage.ts';
import type { MessageState, Status } from './message.ts';
import { recordSha256 } from './record.ts';

/**
 * What a batch of arriving dead letters does to the messages: which become rows of their own, which are known
 * messages failing again, which were taken before. Pure, so that the rules can be tested without a database;
 * the caller holds the known messages locked and writes the plan in the transaction that moves the position.
 */
export type KnownRow = KnownMessage & Readonly<{ id: string; epoch: bigint; isArchived: boolean }>;

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

export type ArrivalPlan = Readonly<{
  inserts: readonly NewMessage[];
  changes: readonly ChangedMessage[];
  arrivals: readonly NotedArrival[];
  reopened: number;
  folded: number;
  reread: number;
}>;

export function planArrivals(
  letters: readonly DeadLetter[],
  known: ReadonlyMap<string, KnownRow>,
  taken: ReadonlySet<bigint>,
  maxRetries: number,
): ArrivalPlan {
  const inserts: NewMessage[] = [];
  const changes = new Map<string, ChangedMessage>();
  const arrivals: NotedArrival[] = [];
  let reread = 0;

  for (const letter of letters) {
    if (taken.has(letter.record.offset)) {
      reread += 1;
      continue;
    }
    const row = letter.lineage === null ? undefined : known.get(letter.lineage.messageId);
    if (row === undefined || letter.lineage === null) {
      inserts.push({ letter, status: 'PENDING', retryCount: 0, parentId: null });
      continue;
    }
    // Several records of one message apply one after another, in the order of their offsets.
    const from = changes.get(row.id)?.next ?? row.state;
    const lineage = traceLineage(
      { ...row, state: from },
      {
        attempt: letter.lineage.attempt,
        toldTopic: letter.lineage.toldTopic,
        originalTopic: letter.originalTopic,
        sha256: recordSha256(letter.record.key, letter.record.value),
      },
    );
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
    reopened,
    folded: arrivals.length - reopened,
    reread,
  };
}

/** A child whose inherited budget is spent is dead on arrival: a copied header must not open an endless loop. */
function childOf(parentId: string, letter: DeadLetter, inherited: number, maxRetries: number): NewMessage {
  const isSpent = inherited >= maxRetries && inherited > 0;
  return { letter, parentId, retryCount: inherited, status: isSpent ? 'DEAD' : 'PENDING' };
}
