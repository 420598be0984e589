import type { Permission } from '../access/permissions.ts';
import type { Resource } from '../access/scope.ts';

/** What the inbox lists. */
export const inboxKinds = [
  'messages',
  'unroutable',
  'orders',
  'held_key',
  'in_doubt',
  'jobs',
  'sagas',
  'redrive',
  'circuit',
  'ingest',
  'accounting',
] as const;
export type InboxKind = (typeof inboxKinds)[number];

export const inboxSlices = ['dlq', 'outbox', 'jobs', 'saga', 'system'] as const;
export type InboxSlice = (typeof inboxSlices)[number];

/** Where the items of a group are; names of topics, queues and so on are never covered. */
export type InboxPlace = Readonly<{
  topic?: string;
  consumer_group?: string;
  fingerprint?: string;
  destination?: string;
  ordering_key?: string;
  queue?: string;
  workflow?: string;
  step?: string;
  redrive?: string;
  service?: string;
  partition?: number;
}>;

/** What a person would most likely do next, and the permission for it. */
export type InboxVerb = Readonly<{
  action:
    | 'plan_redrive'
    | 'route'
    | 'requeue'
    | 'open'
    | 'review'
    | 'ask_status'
    | 'check_target'
    | 'check_source';
  permission: Permission;
}>;

/** Arrivals of the last hours, as far as they are known. */
export type Arrivals = Readonly<{
  /** In the last minutes: `minutes` of them. */
  recent: number;
  minutes: number;
  /** How many would have been usual in as long a time. */
  usual: number;
}>;

/** Items that need one decision. Everything else about an entry of the inbox is what people did with it. */
export type InboxGroup = Readonly<{
  kind: InboxKind;
  slice: InboxSlice;
  /** With the kind it identifies the group, for as long as there are such items. */
  key: readonly string[];
  /** As stored: whoever shows it masks it. */
  title: string;
  place: InboxPlace;
  /** By which names narrowed roles see it; without any only roles that are not narrowed do. */
  names: Resource;
  count: number;
  oldestAt: Date | null;
  newestAt: Date | null;
  /** When this cause failed first, if that is known. */
  firstAt: Date | null;
  arrivals: Arrivals | null;
  /** What the items have in common that outranks their number. */
  danger: 'effect_unknown' | 'undo_stuck' | null;
  verb: InboxVerb;
  /** Arrivals in each hour of the last day, oldest first. Undefined: not known without another look. */
  trend?: readonly number[];
  /** The newest items. Undefined: not known without another look. */
  samples?: readonly InboxSample[];
  /** A page of the console. */
  link: string;
}>;

export type InboxSample = Readonly<{
  id: string;
  /** As stored. */
  text: string | null;
  link: string;
}>;
