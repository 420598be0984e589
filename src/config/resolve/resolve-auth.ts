import { isPermission, type Permission } from '../../kernel/access/permissions.ts';
import { builtInRoles, isBuiltIn, lineageOf, type Binding, type OwnRole } from '../../kernel/access/roles.ts';
import { dimensions, type Scope } from '../../kernel/access/scope.ts';
import { nearest } from '../../kernel/nearest.ts';
import type { Check } from '../check.ts';
import { isLoopback } from '../formats/host-format.ts';
import { anyOf } from '../formats/value.ts';
import { childPath } from '../key-path.ts';
import type { Settings } from '../schema.ts';
import type { BindingValues, RoleValues } from '../sections/auth.ts';
import {
  requireHttps,
  resolveCliLogin,
  resolveOidc,
  type CliLoginConfig,
  type OidcConfig,
} from './resolve-logins.ts';

export type JwtConfig = Readonly<{
  issuer: string;
  audience: string;
  rolesClaim: string;
  nameClaim: string;
  requiredType: string | null;
}>;

export type AuthConfig = Readonly<{
  /** `local`: loopback only, without authentication; `none`: the same for everybody; `required`: by token. */
  mode: 'local' | 'none' | 'required';
  jwt: JwtConfig | null;
  oidc: OidcConfig | null;
  cli: CliLoginConfig | null;
  apiKeys: Readonly<{ maxDays: number }> | null;
  roles: readonly (readonly [name: string, role: OwnRole])[];
  bindings: readonly Binding[];
}>;

type Given = Pick<Settings, 'app' | 'server' | 'auth'>;

export function resolveAuth({ app, server, auth }: Given, check: Check): AuthConfig {
  const isProduction = /^prod/i.test(app.environment);
  const jwt = resolveJwt(auth.jwt, isProduction, check);
  const oidc = resolveOidc({ auth, publicUrl: server.publicUrl, isProduction }, check);
  const isNone = auth.mode === 'none' || server.allowUnauthenticated;
  const asks = jwt !== null ? 'auth.jwt' : oidc !== null ? 'auth.oidc' : null;
  const mode = asks !== null ? 'required' : isNone ? 'none' : 'local';
  if (asks !== null && isNone)
    check.report(
      [auth.mode === 'none' ? 'auth.mode' : 'server.allow_unauthenticated', `${asks}.issuer`],
      `cannot be combined with ${asks}: remove one of them`,
    );
  if (auth.apiKeys.enabled && asks === null)
    check.report(
      ['auth.api_keys.enabled', 'auth.jwt.issuer', 'auth.oidc.issuer'],
      'requires auth.jwt or auth.oidc: users make the keys',
    );
  if (mode === 'local' && isProduction && isLoopback(server.host))
    check.report(
      ['app.environment', 'auth.jwt.issuer', 'auth.mode'],
      `${app.environment} requires authentication: configure auth.oidc or auth.jwt, or set auth.mode to none if everybody who reaches the server may do everything`,
    );
  checkExposure(server, mode, check);
  const roles = Object.entries(auth.roles).map(([name, values]) => [name, ownRole(values)] as const);
  checkRoles(roles, check);
  checkBindings(auth.bindings, new Map(roles), check);
  return {
    mode,
    jwt,
    oidc,
    cli: resolveCliLogin(auth, check),
    apiKeys: auth.apiKeys.enabled ? { maxDays: auth.apiKeys.maxDays } : null,
    roles,
    bindings: auth.bindings.map(({ role, subjects, ...rest }) => ({ role, subjects, scope: scopeOf(rest) })),
  };
}

function resolveJwt(jwt: Settings['auth']['jwt'], isProduction: boolean, check: Check): JwtConfig | null {
  const { issuer, audience, rolesClaim, nameClaim, requireTyp } = jwt;
  if (issuer === undefined) {
    if (audience !== undefined) check.report(['auth.jwt.issuer'], 'is missing, but auth.jwt.audience is set');
    return null;
  }
  if (audience === undefined)
    check.report(
      ['auth.jwt.audience', 'auth.jwt.issuer'],
      'is missing: without it, tokens for other services of the issuer would be accepted',
    );
  requireHttps('auth.jwt.issuer', issuer, isProduction, check);
  return { issuer, audience: audience ?? '', rolesClaim, nameClaim, requiredType: requireTyp ?? null };
}

function checkExposure(
  { host, allowUnauthenticated }: Given['server'],
  mode: AuthConfig['mode'],
  { report, warn }: Check,
): void {
  if (isLoopback(host) || mode === 'required') return;
  const setting = allowUnauthenticated ? 'server.allow_unauthenticated is true' : 'auth.mode is none';
  if (mode === 'none')
    warn(
      `${setting} and server.host is ${host}: everyone who can reach this port can read and change everything; put an authenticating proxy in front of it`,
    );
  else
    report(
      ['server.host', 'server.allow_unauthenticated', 'auth.mode'],
      'lets others in without authentication: configure auth.oidc or auth.jwt; or if that is meant, set server.allow_unauthenticated to true or auth.mode to none',
    );
}

function ownRole({ extends: parent, permissions, ...scope }: RoleValues): OwnRole {
  return {
    extends: parent ?? null,
    permissions: permissions.filter((one): one is Permission => isPermission(one)),
    scope: scopeOf(scope),
  };
}

/** Null if nothing narrows. */
function scopeOf(
  values: Readonly<Partial<Record<(typeof dimensions)[number], readonly string[] | undefined>>>,
) {
  const named = dimensions.flatMap((dimension) => {
    const globs = values[dimension];
    return globs === undefined ? [] : [[dimension, globs] as const];
  });
  return named.length === 0 ? null : (Object.fromEntries(named) as Scope);
}

function checkRoles(roles: AuthConfig['roles'], check: Check): void {
  const own = new Map(roles);
  for (const [name, role] of roles) {
    const path = childPath('auth.roles', name);
    if (isBuiltIn(name))
      check.report([path], 'is a built-in role, which cannot be changed: choose another name');
    const parent = role.extends;
    if (parent === null) {
      if (role.permissions.length === 0)
        check.report([path], 'gives nothing: it needs extends or permissions');
    } else if (!isBuiltIn(parent) && !own.has(parent)) {
      check.report([`${path}.extends`], unknownRole(parent, own));
    } else if (isCircular(name, own)) {
      check.report([`${path}.extends`], 'must not lead back to the same role');
    }
  }
}

function isCircular(name: string, own: ReadonlyMap<string, OwnRole>): boolean {
  const last = lineageOf(name, own).at(-1) ?? name;
  return !isBuiltIn(last) && own.has(own.get(last)?.extends ?? '');
}

function checkBindings(
  bindings: readonly BindingValues[],
  own: ReadonlyMap<string, OwnRole>,
  check: Check,
): void {
  bindings.forEach(({ role }, index) => {
    if (!isBuiltIn(role) && !own.has(role))
      check.report([`auth.bindings[${index}].role`], unknownRole(role, own));
  });
}

function unknownRole(role: string, own: ReadonlyMap<string, OwnRole>): string {
  const meant = anyOf(nearest(role, [...builtInRoles, ...own.keys()]));
  return `is neither a built-in role nor one of auth.roles${meant === undefined ? '' : `; did you mean ${meant}?`}`;
}
