import { permissions, withViews, type Permission } from './permissions.ts';
import type { Grant } from './principal.ts';
import type { Scope } from './scope.ts';

const views = permissions.filter((permission) => permission.endsWith(':view'));

/** Cannot be changed. The last two are for programs, which may not look around. */
const builtIn = {
  sys_auditor: views.filter((permission) => !permission.endsWith(':payloads:view')),
  sys_operator: [
    ...views.filter((permission) => permission !== 'audit:events:view'),
    'dlq:messages:retry',
    'dlq:messages:mark-dead',
    'dlq:messages:reopen',
    'dlq:redrives:plan',
    'dlq:redrives:start',
    'dlq:redrives:pause',
    'dlq:redrives:cancel',
    'outbox:orders:cancel',
    'jobs:jobs:requeue',
    'jobs:jobs:cancel',
    'jobs:queues:pause',
    'saga:sagas:cancel',
    'saga:sagas:compensate',
    'saga:sagas:repair',
    'console:entries:edit',
    'console:views:share',
  ],
  sys_admin: permissions,
  worker: ['jobs:jobs:work'],
  producer: ['jobs:jobs:enqueue', 'outbox:orders:add', 'saga:sagas:start'],
} as const satisfies Readonly<Record<string, readonly Permission[]>>;

export type BuiltInRole = keyof typeof builtIn;

export const builtInRoles = Object.keys(builtIn) as readonly BuiltInRole[];

export function isBuiltIn(role: string): role is BuiltInRole {
  return Object.hasOwn(builtIn, role);
}

const isForPrograms = (role: string): boolean => role === 'worker' || role === 'producer';

/** A role of the configuration. */
export type OwnRole = Readonly<{
  extends: string | null;
  permissions: readonly Permission[];
  /** Null: not narrowed. */
  scope: Scope | null;
}>;

/** A role for all principals with one of the subjects; null: not narrowed further. */
export type Binding = Readonly<{ role: string; subjects: readonly string[]; scope: Scope | null }>;

/** The roles from the given one up to a built-in or unknown one. Ends where a role comes twice. */
export function lineageOf(role: string, own: ReadonlyMap<string, OwnRole>): readonly string[] {
  const lineage: string[] = [];
  for (let name: string | null = role; name !== null && !lineage.includes(name);) {
    lineage.push(name);
    name = isBuiltIn(name) ? null : (own.get(name)?.extends ?? null);
  }
  return lineage;
}

/** What a role gives; nothing if there is no such role. */
export function grantsOfRole(role: string, own: ReadonlyMap<string, OwnRole>): readonly Grant[] {
  const lineage = lineageOf(role, own);
  const impliesView = !lineage.some(isForPrograms);
  const scopes: Scope[] = [];
  const grants: Grant[] = [];
  for (const name of lineage) {
    const { permissions: given, scope } = isBuiltIn(name)
      ? { permissions: builtIn[name], scope: null }
      : (own.get(name) ?? { permissions: [], scope: null });
    if (scope !== null) scopes.push(scope);
    const all = impliesView ? withViews(given) : new Set<Permission>(given);
    if (all.size > 0) grants.push({ role, permissions: all, scopes: [...scopes] });
  }
  return grants;
}

/** What holds while the configuration binds nothing. */
const defaultBindings: readonly Binding[] = (['sys_auditor', 'sys_operator', 'sys_admin'] as const).map(
  (role) => ({ role, subjects: [`role:${role}`], scope: null }),
);

/** Who has which roles. */
export type Policy = Readonly<{
  /** What a role gives, for a key that has it. */
  grantsOfRole(role: string): readonly Grant[];
  hasRole(role: string): boolean;
  /** What principals with these subjects have: their own, and those of their roles. */
  grantsFor(subjects: ReadonlySet<string>): readonly Grant[];
}>;

export function createPolicy(own: ReadonlyMap<string, OwnRole>, bindings: readonly Binding[]): Policy {
  const roles = new Map(
    [...builtInRoles, ...own.keys()].map((role) => [role, grantsOfRole(role, own)] as const),
  );
  const bound = (bindings.length === 0 ? defaultBindings : bindings).map(({ role, subjects, scope }) => ({
    subjects,
    grants: (roles.get(role) ?? []).map((grant) =>
      scope === null ? grant : { ...grant, scopes: [...grant.scopes, scope] },
    ),
  }));
  return {
    grantsOfRole: (role) => roles.get(role) ?? [],
    hasRole: (role) => roles.has(role),
    grantsFor: (subjects) =>
      bound
        .filter((binding) => binding.subjects.some((subject) => subjects.has(subject)))
        .flatMap(({ grants }) => grants),
  };
}
