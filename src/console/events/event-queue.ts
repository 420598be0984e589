/** What a client has still to be told. However long it does not read, this stays small: the newest figures count. */
export type EventQueue = Readonly<{
  /** `many`: everything in the slice has to be read again. */
  changed(slice: string, ids: readonly string[], many: boolean): void;
  /** How many items of the slice need attention; null if they could not be counted. */
  counted(slice: string, needsAttention: number | null): void;
  redrives(data: string): void;
  resync(): void;
  beat(): void;
  next(): QueuedEvent | null;
}>;

/** `isLast`: nothing that changed is left, so that a client that has heard this has missed nothing. */
export type QueuedEvent = Readonly<{ event: string; data: string; isLast: boolean }>;

const maxIds = 50;
const noRedrives = '{"redrives":[]}';

export function createEventQueue(): EventQueue {
  const pending = new Map<string, { ids: Set<string>; many: boolean }>();
  const counts = new Map<string, { now: number | null; told: number | null | undefined }>();
  const redrives = { now: noRedrives, told: noRedrives };
  let needsResync = false;
  let isBeatDue = false;

  const put = (slice: string) => {
    const known = pending.get(slice) ?? { ids: new Set<string>(), many: false };
    pending.set(slice, known);
    return known;
  };
  const take = (): readonly [event: string, data: string] | null => {
    if (needsResync) {
      needsResync = false;
      return ['resync', '{}'];
    }
    const [first] = pending;
    if (first !== undefined) {
      const [slice, { ids, many }] = first;
      pending.delete(slice);
      const count = counts.get(slice);
      if (count !== undefined) count.told = count.now;
      const figures = count === undefined ? {} : { needs_attention: count.now };
      return ['change', JSON.stringify({ slice, ids: [...ids], many, counts: figures })];
    }
    if (redrives.now !== redrives.told) {
      redrives.told = redrives.now;
      return ['redrive', redrives.now];
    }
    if (!isBeatDue) return null;
    isBeatDue = false;
    return ['beat', '{}'];
  };

  return {
    changed(slice, ids, many) {
      const known = put(slice);
      for (const id of ids) known.ids.add(id);
      known.many ||= many || known.ids.size > maxIds;
      if (known.many) known.ids.clear();
    },
    counted(slice, now) {
      const told = counts.get(slice)?.told;
      counts.set(slice, { now, told });
      if (told !== now) put(slice);
    },
    redrives: (data) => void (redrives.now = data),
    resync: () => void (needsResync = true),
    beat: () => void (isBeatDue = true),
    next() {
      const taken = take();
      if (taken === null) return null;
      const [event, data] = taken;
      return { event, data, isLast: pending.size === 0 && !needsResync };
    },
  };
}
