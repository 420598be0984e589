import { comeBack, type MessageState } from './message.ts';

/**
 * Decides whether a dead letter is a message that we republished and that failed again. Our headers alone do not prove
 * it: a consumer may copy them to other messages. It is the same message only if key and value are those that the
 * named attempt published, and the topic and the version in its headers, if they are there, are those of that attempt.
 * Only then does the failure count against the same budget, which limits the loop consumer -> dead letter -> retry ->
 * consumer.
 */
export type Arrival = Readonly<{
  /** From `redrive-attempt`; null if the header is missing or malformed. */
  attempt: number | null;
  /** From `redrive-version`; null for the original, and if the header is missing or malformed. */
  version: number | null;
  sha256: Buffer;
  /** What an attempt of an encrypted message notes instead; null if no message is encrypted. */
  protectedSha256: Buffer | null;
  /** The topic on which it failed, from its headers. */
  headerTopic: string | null;
  /** It names the place to which the attempt was published: it is the same message, even if its bytes changed. */
  namesPlace: boolean;
  /** Where it belongs, from headers, a rule or the name of its topic. */
  originalTopic: string;
}>;

/** What an attempt published, and where. Version 0 is the original. */
export type SentAttempt = Readonly<{ sha256: Buffer; topic: string; version: number }>;

export type KnownMessage = Readonly<{
  state: MessageState;
  /** The attempts that the arriving records name, by number; attempts from before hashes were stored are missing. */
  attempts: ReadonlyMap<number, SentAttempt>;
  /** What the newest attempt published, if the attempt is missing. */
  publishedSha256: Buffer | null;
  originalTopic: string;
}>;

export type Lineage =
  /** A new message with this one as its parent. */
  | Readonly<{ kind: 'child'; retryCount: number }>
  /** An earlier attempt failed after a later one was sent: only the history gets an entry. */
  | Readonly<{ kind: 'late_failure' }>
  /** The same message failed again, and its status changes. */
  | Readonly<{ kind: 'reopened'; next: MessageState }>
  /** The same message failed again, and only its error changes. */
  | Readonly<{ kind: 'repeated' }>;

export function traceLineage(known: KnownMessage, arrival: Arrival): Lineage {
  const sent = known.attempts.get(namedAttempt(known.state, arrival.attempt));
  const noted = sent?.sha256 ?? known.publishedSha256;
  const isSameRecord = [arrival.sha256, arrival.protectedSha256].some(
    (one) => one !== null && noted?.equals(one),
  );
  const sentTo = sent?.topic ?? known.originalTopic;
  const isOtherTopic = arrival.headerTopic !== null && arrival.headerTopic !== sentTo;
  const isOtherVersion = sent !== undefined && arrival.version !== null && arrival.version !== sent.version;
  const isOther = !isSameRecord || isOtherTopic || isOtherVersion;
  if (!arrival.namesPlace && isOther)
    return {
      kind: 'child',
      retryCount: arrival.originalTopic === known.originalTopic ? known.state.retryCount : 0,
    };
  if (arrival.attempt !== null && arrival.attempt < known.state.attemptNo) return { kind: 'late_failure' };
  const next = comeBack(known.state);
  return next.status === known.state.status ? { kind: 'repeated' } : { kind: 'reopened', next };
}

/** The newest attempt if the record names none, or one that does not exist yet. */
export function namedAttempt({ attemptNo }: Pick<MessageState, 'attemptNo'>, named: number | null): number {
  return named === null ? attemptNo : Math.min(named, attemptNo);
}
