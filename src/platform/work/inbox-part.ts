import type { Permission } from '../../kernel/access/permissions.ts';
import type { Dimension, NameFilter } from '../../kernel/access/scope.ts';
import type { InboxGroup, InboxKind, InboxSample, InboxSlice } from '../../kernel/inbox/inbox-group.ts';
import type { Queryable } from '../postgres/database.ts';

/** Who sees the entries of a kind: principals with the permission for their names, or for everything. */
export type InboxRight = Readonly<{ permission: Permission; dimension: Dimension | null }>;

export type InboxGroups = Readonly<{
  groups: readonly InboxGroup[];
  /** There are more groups than were read. */
  isPartial: boolean;
}>;

/** What a slice gives to the inbox. Every function is bounded, and reads by indexes. */
export type InboxPart = Readonly<{
  slice: InboxSlice;
  kinds: Readonly<Partial<Record<InboxKind, InboxRight>>>;
  /** The groups of the asked kinds, as far as the filter of each kind lets their names through. */
  read: (db: Queryable, asked: ReadonlyMap<InboxKind, NameFilter>) => Promise<InboxGroups>;
  /** Arrivals per hour of the last day, oldest first, of groups that do not have them; null if they are not known. */
  trends?: (db: Queryable, groups: readonly InboxGroup[]) => Promise<readonly (readonly number[] | null)[]>;
  /** The newest items of a group that does not have them. */
  samples?: (db: Queryable, group: InboxGroup, limit: number) => Promise<readonly InboxSample[]>;
}>;

export const nothing: InboxGroups = { groups: [], isPartial: false };
