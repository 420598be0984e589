/**
 * What a principal may be allowed to do: `slice:resource:action`. Every route names one of them, and roles are lists of
 * them. The one for viewing a resource is implied by every other one for the same resource, except in the roles of
 * programs.
 */
export const permissions = [
  'dlq:messages:view',
  'dlq:messages:retry',
  'dlq:messages:retry-all',
  'dlq:messages:mark-dead',
  'dlq:messages:reopen',
  'dlq:messages:route',
  'dlq:messages:edit',
  'dlq:messages:delete',
  'dlq:messages:erase',
  'dlq:payloads:view',
  'dlq:redrives:view',
  'dlq:redrives:plan',
  'dlq:redrives:approve',
  'dlq:redrives:start',
  'dlq:redrives:pause',
  'dlq:redrives:cancel',
  'dlq:sources:view',
  'dlq:sources:manage',
  'outbox:orders:view',
  'outbox:orders:add',
  'outbox:orders:cancel',
  'outbox:orders:skip',
  'outbox:orders:supersede',
  'outbox:payloads:view',
  'outbox:destinations:view',
  'jobs:jobs:view',
  'jobs:jobs:enqueue',
  'jobs:jobs:work',
  'jobs:jobs:requeue',
  'jobs:jobs:cancel',
  'jobs:jobs:discard',
  'jobs:payloads:view',
  'jobs:queues:view',
  'jobs:queues:pause',
  'saga:sagas:view',
  'saga:sagas:start',
  'saga:sagas:cancel',
  'saga:sagas:compensate',
  'saga:sagas:repair',
  'saga:payloads:view',
  'saga:workflows:view',
  'saga:workflows:register',
  'saga:services:view',
  'console:inbox:view',
  'console:entries:edit',
  'console:views:share',
  'access:keys:view',
  'access:keys:manage',
  'audit:events:view',
  'audit:activity:view',
  'access:sessions:view',
  'access:sessions:manage',
  'system:metrics:view',
  'system:status:view',
] as const;

export type Permission = (typeof permissions)[number];

const known: ReadonlySet<string> = new Set(permissions);

export function isPermission(text: string): text is Permission {
  return known.has(text);
}

/** The permissions with those to view the same resources. */
export function withViews(given: Iterable<Permission>): ReadonlySet<Permission> {
  const all = [...given];
  const views = all.map((permission) => permission.replace(/[^:]+$/, 'view')).filter(isPermission);
  return new Set([...all, ...views]);
}
