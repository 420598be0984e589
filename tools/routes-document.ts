import { mayAnywhere } from '../src/kernel/access/principal.ts';
import { builtInRoles, grantsOfRole } from '../src/kernel/access/roles.ts';
import type { DeclaredRoute, RouteAccess } from '../src/platform/http/access/route-access.ts';

const introduction = `# Routes and who may call them

Written by \`UPDATE_SNAPSHOTS=1 npm test -- tests/e2e/approved.test.ts\` from what the routes declare. *narrowed by* says how a narrowed role applies: \`topics\` shows the items of the role's topics only, and a route without it needs a role that is not narrowed. See [access](design/access.md).
`;

/** docs/routes.md: every route, the permission that it needs, and the built-in roles that have it. */
export function routesDocument(routes: readonly DeclaredRoute[]): string {
  const sorted = routes.toSorted(
    (a, b) => compare(a.path, b.path) || methods.indexOf(a.method) - methods.indexOf(b.method),
  );
  const rows = sorted.map(({ method, path, access }) =>
    [method, `\`${path}\``, permissionOf(access), narrowedBy(access), rolesOf(access)].join(' | '),
  );
  const table = [
    'method | path | permission | narrowed by | built-in roles',
    '--- | --- | --- | --- | ---',
    ...rows,
  ];
  return `${introduction}\n${table.map((row) => `| ${row} |`).join('\n')}\n`;
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function permissionOf(access: RouteAccess): string {
  return typeof access === 'object' ? `\`${access.permission}\`` : access;
}

function narrowedBy(access: RouteAccess): string {
  return typeof access === 'object' ? (access.scope?.by ?? '') : '';
}

function rolesOf(access: RouteAccess): string {
  if (typeof access !== 'object') return 'all';
  return builtInRoles
    .filter((role) => mayAnywhere({ grants: grantsOfRole(role, new Map()) }, access.permission))
    .join(', ');
}
