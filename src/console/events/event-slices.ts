import type { Permission } from '../../kernel/access/permissions.ts';
import type { Dimension } from '../../kernel/access/scope.ts';

/** Whose events a principal gets: of the rows that it may view. */
export type EventSlice = Readonly<{ name: string; permission: Permission; dimension: Dimension }>;

/** By the first segment of their pages. */
export const eventSlices = [
  { name: 'dlq', permission: 'dlq:messages:view', dimension: 'topics' },
  { name: 'outbox', permission: 'outbox:orders:view', dimension: 'destinations' },
  { name: 'jobs', permission: 'jobs:jobs:view', dimension: 'queues' },
  { name: 'sagas', permission: 'saga:sagas:view', dimension: 'workflows' },
] as const satisfies readonly EventSlice[];

export type EventSliceName = (typeof eventSlices)[number]['name'];
