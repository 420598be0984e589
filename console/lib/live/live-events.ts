import type { Redrive } from '../server-shapes.ts';

/** The slices that events name, by the first segment of their pages. */
export const slices = ['dlq', 'outbox', 'jobs', 'sagas'] as const;
export type Slice = (typeof slices)[number];

/** What changed in one slice. `many`: read all of it again. */
export type Change = Readonly<{ slice: Slice; ids: readonly string[]; many: boolean }>;

/** A redrive as the server tells it every second. */
export type FollowedRedrive = Readonly<
  Pick<
    Redrive,
    | 'id'
    | 'started_at'
    | 'kind'
    | 'state'
    | 'state_reason'
    | 'reason'
    | 'policy'
    | 'counts'
    | 'rate_now'
    | 'eta_seconds'
  >
>;

export type LiveEvent =
  /** `needsAttention` is null if the server could not count it, and absent if it has not changed. */
  | Readonly<{ kind: 'change'; change: Change; needsAttention?: number | null }>
  | Readonly<{ kind: 'redrives'; redrives: readonly FollowedRedrive[] }>
  | Readonly<{ kind: 'resync' | 'beat' | 'bye' }>;

/** Null for what this version does not know: a newer server may tell more. */
export function readEvent(name: string, text: string): LiveEvent | null {
  switch (name) {
    case 'resync':
    case 'beat':
    case 'bye':
      return { kind: name };
    case 'redrive':
      return { kind: 'redrives', ...(JSON.parse(text) as { redrives: readonly FollowedRedrive[] }) };
    case 'change': {
      const { slice, ids, many, counts } = JSON.parse(text) as Change & {
        counts: Readonly<{ needs_attention?: number | null }>;
      };
      if (!slices.includes(slice)) return null;
      const { needs_attention: count } = counts;
      return {
        kind: 'change',
        change: { slice, ids, many },
        ...(count === undefined ? {} : { needsAttention: count }),
      };
    }
    default:
      return null;
  }
}

/** What has still to be read again. */
export type Unread = Readonly<{ ids: ReadonlySet<string>; many: boolean }>;

export const nothingUnread: Unread = { ids: new Set(), many: false };
export const allUnread: Unread = { ids: new Set(), many: true };

/** Whatever the order in which changes come, the result is the same. */
export function addUnread(unread: Unread, { ids, many }: Pick<Change, 'ids' | 'many'>): Unread {
  if (unread.many || many) return allUnread;
  if (ids.every((id) => unread.ids.has(id))) return unread;
  return { ids: new Set([...unread.ids, ...ids]), many: false };
}
