/**
 * Nobody reads a message per dead letter, so events are grouped, for each notifier separately. The first event of a
 * group is sent at once and starts a cooldown. Events that come during the cooldown are pending; when it ends they are
 * sent as one summary, which starts the next cooldown. A cooldown that ends without pending events ends the group.
 *
 * So there is at least a cooldown between two messages of a group, no event is pending for longer than that, and the
 * counts of all messages and of the pending events add up to the number of events.
 */

/** A row of `platform.notify_events`: something needs attention. */
export type NotifyEvent = Readonly<{
  slice: string;
  kind: string;
  /** A topic, a queue, a destination, a workflow. */
  subject: string;
  itemId: string;
  summary: string;
  atMs: number;
}>;

export type GroupName = Readonly<Pick<NotifyEvent, 'slice' | 'kind' | 'subject'>>;

export type Sample = Readonly<{ id: string; summary: string }>;

/** Several events of one group, with the first few as samples. */
export type Tally = Readonly<{
  count: number;
  firstAtMs: number;
  lastAtMs: number;
  samples: readonly Sample[];
}>;

export type Group = Readonly<{ notifiedAtMs: number; pending: Tally | undefined }>;

export const MAX_SAMPLES = 10;

export function groupKey({ slice, kind, subject }: GroupName): string {
  return JSON.stringify([slice, kind, subject]);
}

/**
 * Internal orders never notify anybody: the notification itself may be what fails. The outbox writes no events about
 * them; this is a second safeguard.
 */
export function isNotifiable({ slice, subject }: GroupName): boolean {
  return !(slice === 'outbox' && subject.startsWith('_'));
}

export type NamedTally = Readonly<{ name: GroupName; tally: Tally }>;

/** One tally per group, in the order of each group's first event. */
export function tallyEvents(events: readonly NotifyEvent[]): readonly NamedTally[] {
  return [...Map.groupBy(events, groupKey).values()].flatMap((alike) => {
    const [first] = alike;
    if (first === undefined) return [];
    const { slice, kind, subject } = first;
    return [{ name: { slice, kind, subject }, tally: tallyOf(alike) }];
  });
}

function tallyOf(events: readonly NotifyEvent[]): Tally {
  const times = events.map(({ atMs }) => atMs);
  return {
    count: events.length,
    firstAtMs: Math.min(...times),
    lastAtMs: Math.max(...times),
    samples: events.slice(0, MAX_SAMPLES).map(({ itemId, summary }) => ({ id: itemId, summary })),
  };
}

function join(one: Tally | undefined, other: Tally | undefined): Tally | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    count: one.count + other.count,
    firstAtMs: Math.min(one.firstAtMs, other.firstAtMs),
    lastAtMs: Math.max(one.lastAtMs, other.lastAtMs),
    samples: [...one.samples, ...other.samples].slice(0, MAX_SAMPLES),
  };
}

/** What is sent now; a summary is about events that were pending. */
export type Notice = Tally & Readonly<{ isSummary: boolean }>;

export type Advance = Readonly<{
  /** Undefined if the group has ended. */
  group: Group | undefined;
  notice: Notice | undefined;
}>;

/** The group after events have come, time has passed, or both, and what to send. */
export function advance(
  group: Group | undefined,
  came: Tally | undefined,
  { nowMs, cooldownMs }: Readonly<{ nowMs: number; cooldownMs: number }>,
): Advance {
  const untold = join(group?.pending, came);
  if (group !== undefined && nowMs < group.notifiedAtMs + cooldownMs)
    return { group: { ...group, pending: untold }, notice: undefined };
  if (untold === undefined) return { group: undefined, notice: undefined };
  return {
    group: { notifiedAtMs: nowMs, pending: undefined },
    notice: { ...untold, isSummary: group?.pending !== undefined },
  };
}
