import { withViews, permissions as allPermissions, type Permission } from './permissions.ts';
import {
  covers,
  isWithin,
  type Dimension,
  type NameFilter,
  type NameFilters,
  type Resource,
  type Scope,
} from './scope.ts';

/** What one binding gives. */
export type Grant = Readonly<{
  role: string;
  permissions: ReadonlySet<Permission>;
  /** All of them must cover a resource; without any the grant is not narrowed. */
  scopes: readonly Scope[];
}>;

/** Who calls: a person, a program, a key, or somebody who reached a server without authentication. */
export type Principal = Readonly<{
  type: 'user' | 'service' | 'api_key' | 'local';
  /** `<issuer>|<subject>`, the id of the key, or the name of the local principal. */
  id: string;
  name: string;
  roles: readonly string[];
  grants: readonly Grant[];
}>;

/** May do everything; the only principal of a server without authentication. */
export const localPrincipal: Principal = {
  type: 'local',
  id: 'local',
  name: 'local',
  roles: ['sys_admin'],
  grants: [{ role: 'sys_admin', permissions: withViews(allPermissions), scopes: [] }],
};

/** May do nothing: the caller of a public route. */
export const nobody: Principal = { type: 'local', id: 'nobody', name: 'nobody', roles: [], grants: [] };

/** How bindings, stored actors and the audit log name the principal. */
export function subjectOf({ type, id }: Pick<Principal, 'type' | 'id'>): string {
  switch (type) {
    case 'api_key':
      return `key:${id}`;
    case 'local':
      return id;
    case 'user':
    case 'service':
      return `user:${id}`;
  }
}

/** Whose an item is that the principal adds or claims; null without authentication, where nobody is known. */
export function creatorOf(principal: Pick<Principal, 'type' | 'id'>): string | null {
  return principal.type === 'local' ? null : subjectOf(principal);
}

/** Whether one grant has the permission and covers the resource. */
export function isAllowed(
  { grants }: Pick<Principal, 'grants'>,
  permission: Permission,
  resource: Resource,
): boolean {
  return grants.some(
    ({ permissions, scopes }) =>
      permissions.has(permission) && scopes.every((scope) => covers(scope, resource)),
  );
}

/** Whether there is anything at all for which the principal has the permission. */
export function mayAnywhere({ grants }: Pick<Principal, 'grants'>, permission: Permission): boolean {
  return grants.some(({ permissions }) => permissions.has(permission));
}

/** Whether the principal has the permission for everything. */
export function mayEverywhere({ grants }: Pick<Principal, 'grants'>, permission: Permission): boolean {
  return grants.some(({ permissions, scopes }) => scopes.length === 0 && permissions.has(permission));
}

/** The names of one dimension for which the principal has the permission. */
export function namesAllowed(
  principal: Pick<Principal, 'grants'>,
  permission: Permission,
  dimension: Dimension,
): NameFilter {
  if (mayEverywhere(principal, permission)) return null;
  return principal.grants
    .filter(({ permissions }) => permissions.has(permission))
    .map(({ scopes }) => scopes.map((scope) => scope[dimension] ?? []))
    .filter((lists) => lists.every((globs) => globs.length > 0));
}

/** The same for every dimension. */
export function allNamesAllowed(principal: Pick<Principal, 'grants'>, permission: Permission): NameFilters {
  const of = (dimension: Dimension): NameFilter => namesAllowed(principal, permission, dimension);
  return {
    topics: of('topics'),
    queues: of('queues'),
    destinations: of('destinations'),
    workflows: of('workflows'),
  };
}

/** The names of one dimension for which the principal has one of the permissions. */
export function namesAllowedByAny(
  principal: Pick<Principal, 'grants'>,
  permissions: readonly Permission[],
  dimension: Dimension,
): NameFilter {
  const all: (readonly (readonly string[])[])[] = [];
  for (const permission of permissions) {
    const names = namesAllowed(principal, permission, dimension);
    if (names === null) return null;
    all.push(...names);
  }
  return all;
}

/** The permissions of both; each must cover a resource. */
export function intersect(some: readonly Grant[], others: readonly Grant[]): readonly Grant[] {
  return some.flatMap((one) =>
    others
      .map((other) => ({
        role: one.role,
        permissions: new Set([...one.permissions].filter((each) => other.permissions.has(each))),
        scopes: [...one.scopes, ...other.scopes],
      }))
      .filter(({ permissions }) => permissions.size > 0),
  );
}

/** Whether the grants hold everything that the one gives. May be false where it is true. */
export function includesGrant(grants: readonly Grant[], one: Grant): boolean {
  return [...one.permissions].every((permission) =>
    grants.some(
      ({ permissions, scopes }) =>
        permissions.has(permission) &&
        scopes.every((outer) => one.scopes.some((inner) => isWithin(inner, outer))),
    ),
  );
}
