/**
 * Who is told of every single dead letter stops reading. So what is alike is grouped, for each notifier apart: the
 * first is told at once, and then there is a cool-down. What comes meanwhile is held, and told as one summary when
 * the cool-down ends, which begins the next one. A cool-down that ends with nothing held ends the group.
 *
 * So between two messages of a group there is at least a cool-down, nothing is held longer than that, and the counts
 * of all messages and of what is held add up to the events.
 */

/** A row of `platform.notify_events`: something needs a person. */
export type NotifyEvent = Readonly<{
  slice: string;
  kind: string;
  /** A topic, a queue, a destination. */
  subject: string;
  itemId: string;
  summary: string;
  atMs: number;
}>;

export type GroupName = Readonly<Pick<NotifyEvent, 'slice' | 'kind' | 'subject'>>;

export type Sample = Readonly<{ id: string; summary: string }>;

/** Several events of one group, with the first few by name. */
export type Tally = Readonly<{
  count: number;
  firstAtMs: number;
  lastAtMs: number;
  samples: readonly Sample[];
}>;

export type Group = Readonly<{ toldAtMs: number; held: Tally | undefined }>;

export const MAX_SAMPLES = 10;

/** Equal for events of one group, different for others. */
export function groupKey({ slice, kind, subject }: GroupName): string {
  return JSON.stringify([slice, kind, subject]);
}

/**
 * Orders of the system itself are never told of: it may be the telling that fails. The outbox writes no events about
 * them; this is the second lock on that door.
 */
export function isTellable({ slice, subject }: GroupName): boolean {
  return !(slice === 'outbox' && subject.startsWith('_'));
}

export type NamedTally = Readonly<{ name: GroupName; tally: Tally }>;

/** By group, in the order in which the groups first come. */
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

/** What is told now; a summary tells of what was held. */
export type Told = Tally & Readonly<{ isSummary: boolean }>;

export type Advance = Readonly<{
  /** Undefined when the group has ended. */
  group: Group | undefined;
  told: Told | undefined;
}>;

/** What becomes of a group when events have come, or when time has passed, or both. */
export function advance(
  group: Group | undefined,
  came: Tally | undefined,
  { nowMs, cooldownMs }: Readonly<{ nowMs: number; cooldownMs: number }>,
): Advance {
  const untold = join(group?.held, came);
  if (group !== undefined && nowMs < group.toldAtMs + cooldownMs)
    return { group: { ...group, held: untold }, told: undefined };
  if (untold === undefined) return { group: undefined, told: undefined };
  return {
    group: { toldAtMs: nowMs, held: undefined },
    told: { ...untold, isSummary: group?.held !== undefined },
  };
}
