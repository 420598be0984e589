import type { Configuration, DeviceAuthorizationResponse, TokenEndpointResponse } from 'openid-client';
import { codeOf, messageOf } from '../../kernel/errors.ts';
import { ApiError } from '../../client-http/index.ts';
import type { StoredLogin } from './stored-logins.ts';

/** The issuer of a server's tokens, as a public client sees it. openid-client is loaded when it is needed. */
export type IssuerClient = Readonly<{
  /** What to show to the user, and the login that follows when the user has agreed. */
  begin(
    options: Readonly<{ scopes: readonly string[]; audience: string }>,
  ): Promise<
    Readonly<{ shown: DeviceAuthorizationResponse; finish(signal?: AbortSignal): Promise<StoredLogin> }>
  >;
  /** Undefined if the issuer does not renew the login any more. */
  renew(login: StoredLogin): Promise<StoredLogin | undefined>;
  /** Tells the issuer that the login is over, if it has a place for that. */
  revoke(login: StoredLogin): Promise<void>;
}>;

/** Issuers are often far away. */
const timeoutS = 10;
/** Of a token that does not say it. */
const usualLifetimeS = 300;

export async function openIssuerClient({
  issuer,
  clientId,
}: Pick<StoredLogin, 'issuer' | 'clientId'>): Promise<IssuerClient> {
  const openid = await import('openid-client');
  const configuration = await discover(issuer, clientId);

  const loginOf = (tokens: TokenEndpointResponse, before?: StoredLogin): StoredLogin => ({
    issuer,
    clientId,
    accessToken: tokens.access_token,
    refreshToken: tokens.refresh_token ?? before?.refreshToken ?? null,
    expiresAtMs: Date.now() + (tokens.expires_in ?? usualLifetimeS) * 1000,
  });

  return {
    async begin({ scopes, audience }) {
      const shown = await asked(issuer, () =>
        openid.initiateDeviceAuthorization(configuration, { scope: scopes.join(' '), audience }),
      );
      return {
        shown,
        async finish(signal) {
          const options = signal === undefined ? {} : { signal };
          const tokens = await asked(issuer, () =>
            openid.pollDeviceAuthorizationGrant(configuration, shown, undefined, options),
          );
          return loginOf(tokens);
        },
      };
    },
    async renew(login) {
      if (login.refreshToken === null) return undefined;
      try {
        return loginOf(await openid.refreshTokenGrant(configuration, login.refreshToken), login);
      } catch (error) {
        if (error instanceof openid.ResponseBodyError && error.status < 500) return undefined;
        throw failure(issuer, error);
      }
    },
    async revoke({ refreshToken }) {
      if (refreshToken === null || configuration.serverMetadata().revocation_endpoint === undefined) return;
      await asked(issuer, () => openid.tokenRevocation(configuration, refreshToken));
    },
  };
}

async function discover(issuer: string, clientId: string): Promise<Configuration> {
  const { allowInsecureRequests, discovery, None } = await import('openid-client');
  const { protocol, hostname } = new URL(issuer);
  const isLocal = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
  if (protocol !== 'https:' && !isLocal)
    throw new ApiError(`the issuer ${issuer} has no TLS: a login there could be read by others`);
  return asked(issuer, () =>
    discovery(new URL(issuer), clientId, undefined, None(), {
      timeout: timeoutS,
      execute: protocol === 'https:' ? [] : [allowInsecureRequests],
    }),
  );
}

async function asked<T>(issuer: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw failure(issuer, error);
  }
}

function failure(issuer: string, error: unknown): ApiError {
  const { error_description: description, error: code } = error as Readonly<Record<string, unknown>>;
  const said = typeof code === 'string' ? code : (codeOf(error) ?? '');
  const why = typeof description === 'string' ? description : messageOf(error);
  const message = `${issuer} did not complete the login: ${why}${said === '' ? '' : ` (${said})`}`;
  // What the issuer says is an answer; everything else may be better the next time.
  return new ApiError(message, typeof code === 'string' ? { status: 403, cause: error } : { cause: error });
}
