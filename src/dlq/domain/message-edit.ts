import { redriveHeaders } from './redrive-headers.ts';
import type { Status } from './message.ts';

/**
 * When a message may be edited. An edit makes a new version, which the next retry publishes. The danger is that two
 * versions reach a consumer: an attempt whose outcome is not known may have published the version before. Then an edit
 * must say that the message may be sent twice.
 */
export type EditableMessage = Readonly<{
  status: Status;
  version: number;
  /** Its state as an entity tag. */
  tag: string;
  /** False if it was stored without a value. */
  hasValue: boolean;
  isInDoubt: boolean;
}>;

export type EditRequest = Readonly<{
  /** Of the states that the caller has read. */
  tags: readonly string[];
  givesValue: boolean;
  maySendTwice: boolean;
}>;

export type EditRefusal =
  | 'being_retried'
  | 'resolved'
  | 'changed'
  | 'in_doubt'
  | 'without_value'
  | 'too_many_versions';

/** Of one message; each keeps its bytes. */
export const maxVersions = 100;

/** Null if the edit may be made. An attempt whose lease has expired is reaped before. */
export function refuseEdit(message: EditableMessage, request: EditRequest): EditRefusal | null {
  if (message.status === 'RETRYING') return 'being_retried';
  if (message.status === 'RESOLVED') return 'resolved';
  if (!request.tags.includes(message.tag)) return 'changed';
  if (message.isInDoubt && !request.maySendTwice) return 'in_doubt';
  if (!message.hasValue && !request.givesValue) return 'without_value';
  return message.version >= maxVersions ? 'too_many_versions' : null;
}

/** The events in the history of one attempt. */
export type AttemptEvents = Readonly<{ attemptNo: number; events: readonly string[] }>;

const known: ReadonlySet<string> = new Set(['published', 'came_back', 'repeated']);
const unknown: ReadonlySet<string> = new Set(['publish_unknown', 'lease_expired']);
const unsent: ReadonlySet<string> = new Set(['released', 'publish_failed', 'resolved_unpublished']);

/**
 * Whether the newest attempt that may have been sent has an unknown outcome. Attempts that were certainly not sent do
 * not settle the doubt about an earlier one. An attempt that came back was sent, whatever else its history says. One
 * that has started and has no end was ended by a person. `attempts` is the newest part of the history, newest first;
 * if it is not all of it and decides nothing, the message counts as in doubt.
 */
export function isInDoubt(attempts: readonly AttemptEvents[], isWhole: boolean): boolean {
  for (const { events } of attempts) {
    const has = (set: ReadonlySet<string>): boolean => events.some((event) => set.has(event));
    if (has(known)) return false;
    if (has(unknown)) return true;
    if (!has(unsent) && events.includes('retry_started')) return true;
  }
  return !isWhole;
}

/** Names of headers that Redrive sets itself. */
export function isReservedHeader(name: string): boolean {
  return name.toLowerCase().startsWith(reservedPrefix);
}

const reservedPrefix = redriveHeaders.messageId.slice(0, 'redrive-'.length);
