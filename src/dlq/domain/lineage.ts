import { comeBack, type MessageState } from './message.ts';

/**
 * Is an arriving dead letter a message that we re-drove, failing again? Headers alone do not prove it: a
 * consumer may copy ours to other messages that it sends. It is the same message only if key and value are
 * what we last published and the topic it failed on, if told, is the one we published to. Only then does its
 * failure count against the same budget, which bounds the loop consumer -> dead letter -> retry -> consumer.
 */
export type Arrival = Readonly<{
  /** From `redrive-attempt`; null when the header is missing or unreadable. */
  attempt: number | null;
  sha256: Buffer;
  /** The topic on which it failed, if its headers tell. */
  toldTopic: string | null;
  /** Where it belongs, told or not. */
  originalTopic: string;
}>;

export type KnownMessage = Readonly<{
  state: MessageState;
  publishedSha256: Buffer | null;
  originalTopic: string;
}>;

export type Lineage =
  /** A message of its own that names this one as its parent. */
  | Readonly<{ kind: 'child'; retryCount: number }>
  /** An earlier attempt fails after a later one was sent: worth a line of history, nothing else. */
  | Readonly<{ kind: 'late_failure' }>
  /** The same message failed again, and its status changes. */
  | Readonly<{ kind: 'reopened'; next: MessageState }>
  /** The same message failed again, and nothing but its error changes. */
  | Readonly<{ kind: 'repeated' }>;

export function traceLineage(known: KnownMessage, arrival: Arrival): Lineage {
  const isSameRecord = known.publishedSha256?.equals(arrival.sha256) === true;
  const isToldOtherwise = arrival.toldTopic !== null && arrival.toldTopic !== known.originalTopic;
  if (!isSameRecord || isToldOtherwise)
    return {
      kind: 'child',
      retryCount: arrival.originalTopic === known.originalTopic ? known.state.retryCount : 0,
    };
  if (arrival.attempt !== null && arrival.attempt < known.state.attemptNo) return { kind: 'late_failure' };
  const next = comeBack(known.state);
  return next.status === known.state.status ? { kind: 'repeated' } : { kind: 'reopened', next };
}
