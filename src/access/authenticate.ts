import type { FastifyRequest } from 'fastify';
import type { Principal } from '../kernel/access/principal.ts';
import type { Policy } from '../kernel/access/roles.ts';
import { AppError } from '../kernel/errors.ts';
import type { Authenticate } from '../platform/http/access/guard-access.ts';
import type { TokenClaims } from './tokens/verify-token.ts';

export type Credentials = Readonly<{
  policy: Policy;
  /** Throws an AppError if the token is not valid; undefined if only keys are accepted. */
  verifyToken?: ((token: string) => Promise<TokenClaims>) | undefined;
  /** Throws an AppError if the key is not valid; undefined if keys are not enabled. */
  verifyKey?: ((key: string) => Promise<Principal>) | undefined;
  /** What a genuine token or the login of a session says about a user. */
  onPrincipal: (principal: Principal, claims: TokenClaims) => Promise<void>;
}>;

/** Begins every API key, and no JWT: those begin with a JSON object in Base64. */
const keyPrefix = 'rdk_';

/** By the header `Authorization: Bearer <token or API key>`; cookies and the query are not read. */
export function authenticateBearer(credentials: Credentials): Authenticate {
  const { verifyToken, verifyKey, policy, onPrincipal } = credentials;
  return async (request) => {
    const token = bearerOf(request);
    if (token.startsWith(keyPrefix)) {
      if (verifyKey === undefined) throw invalid('API keys are not enabled: see auth.api_keys.enabled');
      return verifyKey(token);
    }
    if (verifyToken === undefined) throw invalid('tokens are not accepted: see auth.jwt');
    const claims = await verifyToken(token);
    const principal = principalOf(claims, policy);
    await onPrincipal(principal, claims);
    return principal;
  };
}

export type SessionCredentials = Readonly<{
  policy: Policy;
  cookieName: string;
  /** Null if the session has ended. */
  verifySession: (reference: string, isUse: boolean) => Promise<TokenClaims | null>;
  onPrincipal: Credentials['onPrincipal'];
}>;

/** By the cookie of a session. With `Authorization` the cookie is ignored, also if that header is wrong. */
export function authenticateBrowsers(credentials: SessionCredentials, others: Authenticate): Authenticate {
  const { policy, cookieName, verifySession, onPrincipal } = credentials;
  return async (request, isUse) => {
    const { authorization, cookie = '' } = request.headers;
    const reference =
      authorization === undefined ? request.server.parseCookie(cookie)[cookieName] : undefined;
    if (reference === undefined) return others(request, isUse);
    const claims = await verifySession(reference, isUse);
    if (claims === null)
      throw new AppError('SYS_AUTH_TOKEN_EXPIRED', 'unauthenticated', 'the session has ended; log in again');
    const principal = principalOf(claims, policy);
    await onPrincipal(principal, claims);
    return principal;
  };
}

function bearerOf({ headers: { authorization } }: Pick<FastifyRequest, 'headers'>): string {
  const [, token] = /^bearer +([!-~]+)$/i.exec(authorization ?? '') ?? [];
  if (token !== undefined) return token;
  throw new AppError(
    'SYS_AUTH_MISSING_TOKEN',
    'unauthenticated',
    'send a token or an API key in the header authorization: Bearer …',
  );
}

function invalid(reason: string): AppError {
  return new AppError('SYS_AUTH_TOKEN_INVALID', 'unauthenticated', `the token is not valid: ${reason}`);
}

/** What the bindings give to whom the issuer describes. */
export function principalOf({ type, id, name, roles }: TokenClaims, policy: Policy): Principal {
  const grants = policy.grantsFor(subjectsOf(id, roles));
  return { type, id, name, roles: [...new Set(grants.map(({ role }) => role))], grants };
}

/** How bindings may name a person: by the identity and by the issuer's roles, never by a name or an address. */
export function subjectsOf(id: string, roles: readonly string[]): ReadonlySet<string> {
  return new Set([`user:${id}`, ...roles.map((role) => `role:${role}`)]);
}
