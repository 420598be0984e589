import type { Permission } from '../src/kernel/access/permissions.ts';
import { mayAnywhere } from '../src/kernel/access/principal.ts';
import { builtInRoles, grantsOfRole } from '../src/kernel/access/roles.ts';
import type { DeclaredRoute, RouteAccess } from '../src/platform/http/access/route-access.ts';

const introduction = `# Routes and who may call them

Written by \`UPDATE_SNAPSHOTS=1 npm test -- tests/e2e/approved.test.ts\` from what the routes declare. *narrowed by* says how a narrowed role applies: \`topics\` shows the items of the role's topics only, \`any\` what has names of several kinds, all of them in scope, and a route without it needs a role that is not narrowed. *own items*: what the caller added, and the jobs that it runs. See [access](design/access.md).
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
  const whole = sorted.filter(({ access }) => typeof access === 'object' && access.scope === undefined);
  return `${introduction}\n${tableOf(table)}\n${wholeIntroduction}\n${tableOf([
    'method | path | why',
    '--- | --- | ---',
    ...whole.map(({ method, path }) => `${method} | \`${path}\` | ${whyWhole(path)}`),
  ])}`;
}

const tableOf = (rows: readonly string[]): string => rows.map((row) => `| ${row} |\n`).join('');

const wholeIntroduction = `## Only for roles that are not narrowed

What these show or change belongs to no topic, queue, destination or workflow. A narrowed role gets 403 with the permission that it needs in a role that is not narrowed.
`;

/** By the beginning of the path. */
const reasons = [
  ['/api/v1/keys', 'a key may have any role'],
  ['/api/v1/services', 'workflows of all names call the same services'],
  ['/api/v1/workflows', 'a definition may call every service'],
  ['/api/v1/dlq/erasures', 'a key is erased from the messages of all topics'],
  ['/metrics', 'figures of all topics, queues, destinations and workflows'],
] as const;

function whyWhole(path: string): string {
  return reasons.find(([start]) => path.startsWith(start))?.[1] ?? 'it is about the whole system';
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
  const having = (permission: Permission) =>
    builtInRoles.filter((role) => mayAnywhere({ grants: grantsOfRole(role, new Map()) }, permission));
  const all = having(access.permission);
  const ofOwn = (access.own ?? []).flatMap(having).filter((role) => !all.includes(role));
  return [...all, ...[...new Set(ofOwn)].map((role) => `${role} (own items)`)].join(', ');
}
