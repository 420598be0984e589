import { localPrincipal, type Principal } from '../kernel/access/principal.ts';
import type { Rights } from '../kernel/access/rights.ts';
import { createPolicy, type Binding, type OwnRole } from '../kernel/access/roles.ts';
import type { Clock } from '../kernel/clock.ts';
import type { AppError } from '../kernel/errors.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Service } from '../kernel/service.ts';
import type { Authenticate } from '../platform/http/access/guard-access.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Wake } from '../platform/work/wake.ts';
import type { Worker } from '../platform/work/work.ts';
import { createAuthenticate } from './authenticate.ts';
import { limitFailures } from './failed-attempts.ts';
import { createApiKeys } from './keys/api-keys.ts';
import { addKeyRoutes } from './keys/key-routes.ts';
import type { Maker } from './keys/keys-table.ts';
import { createRights, everybodysRights } from './known-users.ts';
import { addMeRoute } from './me-route.ts';
import { createIssuerKeys, type IssuerKeys } from './tokens/issuer-keys.ts';
import { verifyToken, type TokenRules } from './tokens/verify-token.ts';

/** Who calls, and what that allows. The slices only declare what their routes need. */
export type Access = Readonly<{
  authenticate: Authenticate;
  addRoutes(app: HttpApp): void;
  rights: Rights;
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
  options: Readonly<{
    mode: 'local' | 'none' | 'required';
    jwt: TokenRules | null;
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
  const { db, options, clock, environment } = deps;
  const { jwt, apiKeys } = options;
  const log = deps.logger.child({ part: 'access' });
  const policy = createPolicy(new Map(options.roles), options.bindings);
  const keys = createApiKeys({ ...deps, policy, log });
  /** From which tokens the principals of the requests in progress come. */
  const makers = new WeakMap<Principal, Maker>();
  const issuer = jwt === null ? null : createIssuerKeys({ issuer: jwt.issuer });
  return {
    authenticate:
      jwt === null || issuer === null
        ? everybodyIs(options.mode)
        : limitFailures(
            createAuthenticate({
              policy,
              verifyToken: (token) => verifyToken(issuer, jwt, token),
              verifyKey: apiKeys === null ? undefined : keys.verify,
              async onPrincipal(principal, claims) {
                makers.set(principal, claims);
                // While migrations are missing there may be no tables; keys need theirs.
                if (apiKeys !== null || deps.schema.outdated() === null) await keys.noteMaker(claims);
              },
            }),
          ),
    addRoutes(app) {
      addMeRoute(app, { clock, environment });
      addKeyRoutes(app, {
        db,
        policy,
        maxDays: apiKeys?.maxDays ?? null,
        makerOf: (principal) => makers.get(principal),
        onRevoked: keys.forget,
      });
    },
    rights:
      jwt === null
        ? { ...everybodysRights, principalOf: async () => everybody(options.mode) }
        : createRights({
            db,
            policy,
            keys: apiKeys === null ? null : keys,
            makerOf: (one) => makers.get(one),
          }),
    services: [
      ...(issuer === null ? [] : [createRefresh(issuer, deps)]),
      ...(apiKeys === null ? [] : [keys.service]),
    ],
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

function createRefresh(issuer: IssuerKeys, { worker, logger }: AccessDeps): Service {
  let nextMs = Number.NEGATIVE_INFINITY;
  return createLoop({
    name: 'access issuer keys',
    everyMs: lookEveryMs,
    async run() {
      if (performance.now() < nextMs) return;
      await issuer.refresh();
      nextMs = performance.now() + refreshEveryMs;
    },
    beat: () => worker.watch?.beat('access', 'issuer keys'),
    onError: (error) =>
      logger.warn({ err: error }, 'failed to load the keys of the issuer; using the known ones'),
  });
}
