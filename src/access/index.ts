import { localPrincipal, type Principal } from '../kernel/access/principal.ts';
import type { Rights } from '../kernel/access/rights.ts';
import { createPolicy, type Binding, type OwnRole, type Policy } from '../kernel/access/roles.ts';
import type { Clock } from '../kernel/clock.ts';
import type { AppError } from '../kernel/errors.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Service } from '../kernel/service.ts';
import type { Authenticate } from '../platform/http/access/guard-access.ts';
import type { Revocations } from '../platform/http/access/end-when-refused.ts';
import type { OnDenied } from '../platform/http/errors/denied-request.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Wake } from '../platform/work/wake.ts';
import type { Worker } from '../platform/work/work.ts';
import { authenticateBearer, authenticateBrowsers } from './authenticate.ts';
import { limitFailures } from './failed-attempts.ts';
import { createApiKeys, type ApiKeys } from './keys/api-keys.ts';
import { addKeyRoutes } from './keys/key-routes.ts';
import type { Maker } from './keys/keys-table.ts';
import { createRights, everybodysRights } from './known-users.ts';
import { addMeRoute } from './me-route.ts';
import { createRevocations } from './revocations.ts';
import { addCliConfigRoute, type CliLogin } from './sessions/cli-config-route.ts';
import { createLogin, type Login, type LoginOptions } from './sessions/create-login.ts';
import { addLoginRoutes } from './sessions/login-routes.ts';
import { addSessionRoutes } from './sessions/session-routes.ts';
import { createIssuerKeys, type IssuerKeys } from './tokens/issuer-keys.ts';
import { verifyToken, type TokenClaims, type TokenRules } from './tokens/verify-token.ts';

/** Who calls, and what that allows. The slices only declare what their routes need. */
export type Access = Readonly<{
  authenticate: Authenticate;
  /** Of sessions and keys. */
  revocations: Revocations;
  /** How the names of our cookies begin; null if nobody can log in. */
  cookiePrefix: string | null;
  /** Where a browser logs in; null if nobody can. */
  loginPath: string | null;
  addRoutes(app: HttpApp): void;
  rights: Rights;
  checks: readonly HealthCheck[];
  services: readonly Service[];
}>;

export type AccessDeps = Readonly<{
  db: Database;
  worker: Worker;
  wake: Wake;
  clock: Clock;
  logger: Logger;
  schema: Readonly<{ outdated: () => AppError | null }>;
  environment: string;
  /** Told who could not log in. */
  denials: Readonly<{ onDenied: OnDenied }>;
  options: Readonly<{
    mode: 'local' | 'none' | 'required';
    jwt: TokenRules | null;
    oidc: LoginOptions | null;
    cli: Pick<CliLogin, 'clientId' | 'scopes'> | null;
    apiKeys: Readonly<{ maxDays: number }> | null;
    roles: readonly (readonly [name: string, role: OwnRole])[];
    bindings: readonly Binding[];
  }>;
}>;

export const accessMigrations: MigrationSource = {
  slice: 'access',
  directory: new URL('migrations/', import.meta.url),
};

/** Withdrawn keys of the issuer are used this long at most. */
const refreshEveryMs = 600_000;
/** After a failure it tries again this soon. */
const lookEveryMs = 10_000;

export function createAccess(deps: AccessDeps): Access {
  const { db, options } = deps;
  const { jwt, oidc, apiKeys } = options;
  const log = deps.logger.child({ part: 'access' });
  const policy = createPolicy(new Map(options.roles), options.bindings);
  const revocations = createRevocations();
  const keys = createApiKeys({ ...deps, policy, log, onRevoked: revocations.announce });
  /** From which tokens and logins the principals of the requests in progress come. */
  const makers = new WeakMap<Principal, Maker>();
  const issuers = createIssuers();
  const login =
    oidc === null
      ? null
      : createLogin(oidc, {
          ...deps,
          log,
          policy,
          keys: issuers.of(oidc.issuer),
          onEnded: revocations.announce,
        });
  const onPrincipal = async (principal: Principal, claims: TokenClaims): Promise<void> => {
    makers.set(principal, claims);
    // While migrations are missing there may be no tables; keys need theirs.
    if (apiKeys !== null || deps.schema.outdated() === null) await keys.noteMaker(claims);
  };
  const issuer = jwt === null ? null : issuers.of(jwt.issuer);
  const bearer = authenticateBearer({
    policy,
    verifyToken: jwt === null || issuer === null ? undefined : (token) => verifyToken(issuer, jwt, token),
    verifyKey: apiKeys === null ? undefined : keys.verify,
    onPrincipal,
  });
  const programs = limitFailures(bearer);
  return {
    authenticate:
      options.mode !== 'required'
        ? everybodyIs(options.mode)
        : login === null
          ? programs
          : authenticateBrowsers({ policy, ...login.credentials, onPrincipal }, programs),
    revocations: revocations.subscribe,
    cookiePrefix: login?.parts.names.prefix ?? null,
    loginPath: login === null ? null : `${login.parts.pathPrefix}/auth/login`,
    addRoutes: (app) => addRoutes(app, deps, { policy, keys, login, makerOf: (one) => makers.get(one) }),
    rights:
      options.mode !== 'required'
        ? { ...everybodysRights, principalOf: async () => everybody(options.mode) }
        : createRights({
            db,
            policy,
            keys: apiKeys === null ? null : keys,
            makerOf: (one) => makers.get(one),
          }),
    checks: options.mode === 'required' ? [issuerCheck(issuers.all())] : [],
    services: [
      ...issuers.all().map((each) => createRefresh(each, deps)),
      ...(apiKeys === null ? [] : [keys.service]),
      ...(login === null ? [] : [login.parts.sessions.service]),
    ],
  };
}

type RouteParts = Readonly<{
  policy: Policy;
  keys: ApiKeys;
  login: Login | null;
  makerOf: (principal: Principal) => Maker | undefined;
}>;

function addRoutes(app: HttpApp, deps: AccessDeps, { policy, keys, login, makerOf }: RouteParts): void {
  const { db, options } = deps;
  const { jwt, cli, oidc, apiKeys } = options;
  addMeRoute(app, deps);
  addLoginRoutes(app, login?.parts ?? null, deps.denials.onDenied);
  addCliConfigRoute(app, jwt === null || cli === null ? null : { ...jwt, ...cli });
  addSessionRoutes(app, {
    db,
    idleMs: oidc?.session.idleMs ?? null,
    onEnded() {
      keys.forget();
      login?.parts.sessions.forget();
    },
  });
  addKeyRoutes(app, { db, policy, maxDays: apiKeys?.maxDays ?? null, makerOf, onRevoked: keys.forget });
}

/** One set of keys for each issuer, also where tokens and logins come from the same one. */
function createIssuers() {
  const known = new Map<string, IssuerKeys>();
  return {
    of(issuer: string): IssuerKeys {
      const keys = known.get(issuer) ?? createIssuerKeys({ issuer });
      known.set(issuer, keys);
      return keys;
    },
    all: () => [...known.values()],
  };
}

/** Without authentication there is one principal, who may do everything. */
function everybodyIs(mode: 'local' | 'none' | 'required'): Authenticate {
  const principal = everybody(mode);
  return () => principal;
}

function everybody(mode: 'local' | 'none' | 'required'): Principal {
  return mode === 'none' ? { ...localPrincipal, id: 'anonymous', name: 'anonymous' } : localPrincipal;
}

/** Known keys outlive the issuer, so its outage makes nobody unready: new logins and tokens with new keys get 503. */
function issuerCheck(issuers: readonly IssuerKeys[]): HealthCheck {
  return {
    name: 'issuer',
    critical: false,
    async check() {
      const troubles = issuers.flatMap((issuer) => issuer.trouble() ?? []);
      if (troubles.length === 0) return { status: 'healthy' };
      const message = `the issuer does not answer; its known keys stay in use: ${troubles.join('; ')}`;
      return { status: 'degraded', message };
    },
  };
}

function createRefresh(issuer: IssuerKeys, { worker, logger }: AccessDeps): Service {
  let nextMs = Number.NEGATIVE_INFINITY;
  return createLoop({
    name: 'access issuer keys',
    everyMs: lookEveryMs,
    async run() {
      // Of an outage that a token has met, the end is noticed soon, too.
      if (issuer.trouble() === null && performance.now() < nextMs) return;
      await issuer.refresh();
      nextMs = performance.now() + refreshEveryMs;
    },
    beat: () => worker.watch?.beat('access', 'issuer keys'),
    onError: (error) =>
      logger.warn({ err: error }, 'failed to load the keys of the issuer; using the known ones'),
  });
}
