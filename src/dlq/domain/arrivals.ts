import type { DeadLetter } from './dead-letter.ts';
import { traceLineage, type KnownMessage } from './lineage.ts';
import type { MessageState, Status } from './message.ts';
import { recordSha256 } from './record-sha256.ts';

/**
 * Plans what a batch of dead letters changes: which are new messages, which are known messages that failed again, and
 * which were stored before. The caller has locked the known messages and writes the plan in the transaction that
 * moves the position.
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
  stored: ReadonlySet<bigint>,
  maxRetries: number,
): ArrivalPlan {
  const inserts: NewMessage[] = [];
  const changes = new Map<string, ChangedMessage>();
  const arrivals: NotedArrival[] = [];
  let reread = 0;

  for (const letter of letters) {
    if (stored.has(letter.record.offset)) {
      reread += 1;
      continue;
    }
    const row = letter.lineage === null ? undefined : known.get(letter.lineage.messageId);
    if (row === undefined || letter.lineage === null) {
      inserts.push({ letter, status: 'PENDING', retryCount: 0, parentId: null });
      continue;
    }
    // Several records of one message are applied in the order of their offsets.
    const from = changes.get(row.id)?.next ?? row.state;
    const lineage = traceLineage(
      { ...row, state: from },
      {
        attempt: letter.lineage.attempt,
        headerTopic: letter.lineage.headerTopic,
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

/** A child that inherits no attempts is DEAD on arrival: a copied header must not cause an endless loop. */
function childOf(parentId: string, letter: DeadLetter, inherited: number, maxRetries: number): NewMessage {
  const isSpent = inherited >= maxRetries && inherited > 0;
  return { letter, parentId, retryCount: inherited, status: isSpent ? 'DEAD' : 'PENDING' };
}
