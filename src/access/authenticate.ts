import type { FastifyRequest } from 'fastify';
import type { Principal } from '../kernel/access/principal.ts';
import type { Policy } from '../kernel/access/roles.ts';
import { AppError } from '../kernel/errors.ts';
import type { Authenticate } from '../platform/http/access/guard-access.ts';
import type { TokenClaims } from './tokens/verify-token.ts';

export type Credentials = Readonly<{
  policy: Policy;
  /** Throws an AppError if the token is not valid. */
  verifyToken: (token: string) => Promise<TokenClaims>;
  /** Throws an AppError if the key is not valid; undefined if keys are not enabled. */
  verifyKey?: ((key: string) => Promise<Principal>) | undefined;
  /** A genuine token was seen. */
  onPrincipal: (principal: Principal, claims: TokenClaims) => Promise<void>;
}>;

/** Begins every API key, and no JWT: those begin with a JSON object in Base64. */
const keyPrefix = 'rdk_';

/** By the header `Authorization: Bearer <token or API key>`; cookies and the query are not read. */
export function createAuthenticate(credentials: Credentials): Authenticate {
  const { verifyToken, verifyKey, policy, onPrincipal } = credentials;
  return async (request) => {
    const token = bearerOf(request);
    if (token.startsWith(keyPrefix)) {
      if (verifyKey === undefined) throw invalid('API keys are not enabled: see auth.api_keys.enabled');
      return verifyKey(token);
    }
    const claims = await verifyToken(token);
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

function principalOf({ type, id, name, roles }: TokenClaims, policy: Policy): Principal {
  const grants = policy.grantsFor(subjectsOf(id, roles));
  return { type, id, name, roles: [...new Set(grants.map(({ role }) => role))], grants };
}

/** How bindings may name a person: by the identity and by the issuer's roles, never by a name or an address. */
export function subjectsOf(id: string, roles: readonly string[]): ReadonlySet<string> {
  return new Set([`user:${id}`, ...roles.map((role) => `role:${role}`)]);
}
