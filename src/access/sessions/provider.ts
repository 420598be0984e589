import { jwtVerify, type JWTPayload } from 'jose';
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  AuthorizationResponseError,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  calculatePKCECodeChallenge,
  ClientSecretBasic,
  ClientSecretPost,
  discovery,
  fetchUserInfo,
  None,
  randomNonce,
  randomPKCECodeVerifier,
  ResponseBodyError,
  type ClientAuth,
  type Configuration,
} from 'openid-client';
import { AppError, codeOf } from '../../kernel/errors.ts';
import { claimAt } from '../tokens/claim-path.ts';
import { IssuerUnavailable, type IssuerKeys } from '../tokens/issuer-keys.ts';
import { algorithms, claimsOf, toleranceSeconds, type TokenClaims } from '../tokens/verify-token.ts';
import type { LoginState } from './login-state.ts';

export type ProviderOptions = Readonly<{
  issuer: string;
  clientId: string;
  /** Read each time, because it may change. Null: a public client. */
  clientSecret: (() => string) | null;
  scopes: readonly string[];
  rolesClaim: string;
  nameClaim: string;
  publicUrl: string;
  keys: Pick<IssuerKeys, 'keyFor'>;
}>;

/** The OpenID provider at which people log in. Everything throws an AppError: 503 if it does not answer. */
export type Provider = Readonly<{
  /** Where to send the browser, and what to keep until it comes back. */
  begin(state: string): Promise<Readonly<{ url: URL; nonce: string; verifier: string }>>;
  /** Who has logged in, by the query with which the browser came back. */
  finish(query: string, login: LoginState): Promise<TokenClaims>;
  /** Where to log out at the provider as well; null if it has no such page, or cannot be asked. */
  logoutUrl(): Promise<string | null>;
}>;

/** A person waits to be logged in. */
const timeoutS = 5;
/** Addresses of the provider are used this long before they are read again. */
const freshMs = 600_000;
/** After a failure nothing is asked for this long. */
const backoffMs = 1000;

export function createProvider(options: ProviderOptions): Provider {
  const { clientId, scopes, publicUrl } = options;
  const redirectUri = `${publicUrl}/auth/callback`;
  const configuration = keepFresh(() => discover(options));
  return {
    async begin(state) {
      const nonce = randomNonce();
      const verifier = randomPKCECodeVerifier();
      const challenge = await calculatePKCECodeChallenge(verifier);
      const url = buildAuthorizationUrl(await configuration(), {
        redirect_uri: redirectUri,
        scope: scopes.join(' '),
        state,
        nonce,
        code_challenge: challenge,
        code_challenge_method: 'S256',
      });
      return { url, nonce, verifier };
    },
    async finish(query, { state, nonce, verifier }) {
      const known = await configuration();
      try {
        const tokens = await authorizationCodeGrant(known, new URL(`${redirectUri}${query}`), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const { payload } = await jwtVerify(tokens.id_token ?? '', options.keys.keyFor, {
          issuer: options.issuer,
          audience: clientId,
          algorithms,
          clockTolerance: toleranceSeconds,
          requiredClaims: ['exp', 'sub', 'nonce'],
        });
        const claims = await withUserInfo(known, tokens.access_token, { payload, ...options });
        return { ...claimsOf(claims, options), type: 'user' };
      } catch (error) {
        throw faultOf(error);
      }
    },
    async logoutUrl() {
      const known = await configuration().catch(() => null);
      if (known?.serverMetadata().end_session_endpoint === undefined) return null;
      return buildEndSessionUrl(known, { post_logout_redirect_uri: `${publicUrl}/` }).href;
    },
  };
}

async function discover({ issuer, clientId, clientSecret }: ProviderOptions): Promise<Configuration> {
  try {
    return await discovery(new URL(issuer), clientId, undefined, authenticationOf(clientSecret), {
      timeout: timeoutS,
      // The configuration allows http:// on loopback only.
      execute: issuer.startsWith('http:') ? [allowInsecureRequests] : [],
    });
  } catch (error) {
    throw unavailable(error);
  }
}

/** With the method that the provider prefers; without a list it is HTTP Basic. */
function authenticationOf(secret: (() => string) | null): ClientAuth {
  if (secret === null) return None();
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const authenticate = methods.includes('client_secret_basic') ? ClientSecretBasic : ClientSecretPost;
    return authenticate(secret())(server, client, body, headers);
  };
}

/** Reads again from time to time; while that fails, the last value is used. */
function keepFresh<T>(read: () => Promise<T>): () => Promise<T> {
  let known: Readonly<{ value: T; untilMs: number }> | undefined;
  let failure: Readonly<{ error: unknown; untilMs: number }> | undefined;
  let reading: Promise<T> | undefined;

  const readOnce = async (): Promise<T> => {
    try {
      const value = await read();
      known = { value, untilMs: performance.now() + freshMs };
      return value;
    } catch (error) {
      failure = { error, untilMs: performance.now() + backoffMs };
      throw error;
    } finally {
      reading = undefined;
    }
  };

  return async () => {
    const nowMs = performance.now();
    if (known !== undefined && nowMs < known.untilMs) return known.value;
    try {
      if (failure !== undefined && nowMs < failure.untilMs) throw failure.error;
      return await (reading ??= readOnce());
    } catch (error) {
      if (known !== undefined) return known.value;
      throw error;
    }
  };
}

type Told = Readonly<{ payload: JWTPayload; rolesClaim: string; nameClaim: string }>;

/** Providers may put few claims into ID tokens; the others are told by the userinfo endpoint. */
async function withUserInfo(
  configuration: Configuration,
  accessToken: string,
  { payload, rolesClaim, nameClaim }: Told,
): Promise<JWTPayload> {
  const isMissing = (path: string): boolean => claimAt(payload, path) === undefined;
  const hasEndpoint = configuration.serverMetadata().userinfo_endpoint !== undefined;
  if (!hasEndpoint || (!isMissing(rolesClaim) && !isMissing(nameClaim))) return payload;
  const told = await fetchUserInfo(configuration, accessToken, payload.sub ?? '');
  return isMissing(rolesClaim) ? { ...payload, ...told, sub: payload.sub ?? '' } : { ...told, ...payload };
}

function faultOf(error: unknown): unknown {
  if (error instanceof AppError) return error;
  if (error instanceof AuthorizationResponseError)
    return new AppError(
      'SYS_AUTH_LOGIN_REFUSED',
      'forbidden',
      `the provider refused the login: ${error.error}`,
      {
        cause: error,
      },
    );
  if (isOutage(error)) return unavailable(error);
  return new AppError('SYS_AUTH_LOGIN_FAILED', 'validation', 'the login is not valid; log in again', {
    cause: error,
  });
}

/** No answer, or one that says that the provider is broken. */
function isOutage(error: unknown): boolean {
  if (error instanceof IssuerUnavailable || error instanceof TypeError) return true;
  if (error instanceof ResponseBodyError) return error.status >= 500;
  return ['OAUTH_TIMEOUT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON'].includes(
    codeOf(error) ?? '',
  );
}

function unavailable(cause: unknown): AppError {
  return new AppError('SYS_AUTH_ISSUER_UNAVAILABLE', 'unavailable', 'the OpenID provider is unavailable', {
    cause,
    retryAfterMs: 2000,
  });
}
