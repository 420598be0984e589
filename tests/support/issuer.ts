import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose';
import { Provider, type Configuration } from 'oidc-provider';

/** A real OpenID provider on loopback, and its private key to sign what a provider never would. */
export type Issuer = Readonly<{
  url: string;
  /** An access token that the provider issues to the client with these roles. */
  issue(role: string): Promise<string>;
  /** Signs claims of a test with the provider's key; by default those of a valid access token. */
  sign(claims?: Claims, header?: Readonly<Record<string, string>>): Promise<string>;
  publicKey(): Promise<JWK>;
  /** How often the keys were asked for. */
  keyRequests(): number;
  /** Replaces the signing key. */
  rotate(): Promise<void>;
  /** Stops to answer; `resume` answers again under the same address. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  stop(): Promise<void>;
}>;

export type Claims = Readonly<Record<string, unknown>>;

export const audience = 'redrive';
const clientSecret = 'a-secret-of-the-test-client';

type SigningKey = Readonly<{ privateKey: CryptoKey; jwk: JWK; kid: string }>;

let keysMade = 0;

async function makeKey(): Promise<SigningKey> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  keysMade += 1;
  const kid = `key-${keysMade}`;
  return { privateKey, jwk: { ...(await exportJWK(privateKey)), kid, alg: 'RS256', use: 'sig' }, kid };
}

/** What people need to log in, besides the clients for programs. */
export type PeopleAtIssuer = Readonly<{
  /** Merged over the configuration for programs. */
  configure: (base: Configuration) => Configuration;
  /** Answers the pages on which people log in; false for all others. */
  answerPage: (provider: Provider, request: IncomingMessage, response: ServerResponse) => Promise<boolean>;
}>;

/** `roles` are the ids of its clients; a token for a client has the role with the client's name. */
export async function startIssuer(
  roles: readonly string[] = ['sys_admin'],
  people?: PeopleAtIssuer,
): Promise<Issuer> {
  let key = await makeKey();
  let server: Server = createServer();
  let keyRequests = 0;
  await listen(server, 0);
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;

  const serve = (): void => {
    const base = configurationOf(key.jwk, roles);
    const provider = new Provider(url, people?.configure(base) ?? base);
    const callback = provider.callback();
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      if ((await people?.answerPage(provider, request, response)) !== true) await callback(request, response);
    };
    server.removeAllListeners('request');
    server.on('request', (request, response) => {
      if (request.url?.startsWith('/jwks') === true) keyRequests += 1;
      void answer(request, response);
    });
  };
  serve();

  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const sign: Issuer['sign'] = (claims = {}, header = {}) => {
    const nowS = Math.floor(Date.now() / 1000);
    const whole = {
      iss: url,
      aud: audience,
      sub: 'ada',
      iat: nowS,
      exp: nowS + 300,
      roles: [...roles],
      ...claims,
    };
    return new SignJWT(whole)
      .setProtectedHeader({ alg: 'RS256', kid: key.kid, ...header })
      .sign(key.privateKey);
  };

  return {
    url,
    sign,
    issue: (role) => requestToken(url, role),
    async publicKey() {
      const { kty, n, e, kid } = key.jwk;
      return { kty, n, e, kid } as JWK;
    },
    keyRequests: () => keyRequests,
    async rotate() {
      key = await makeKey();
      serve();
    },
    pause,
    async resume() {
      if (server.listening) return;
      server = createServer();
      await listen(server, port);
      serve();
    },
    stop: pause,
  };
}

/** A grant of client credentials. */
async function requestToken(url: string, role: string): Promise<string> {
  const response = await fetch(`${url}/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${role}:${clientSecret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'grant_type=client_credentials',
  });
  const { access_token: token } = (await response.json()) as { access_token?: string };
  if (token === undefined) throw new Error(`the provider answered with status ${response.status}`);
  return token;
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}

/** Tokens for APIs are JWTs of RFC 9068; the client's name is its role. */
function configurationOf(jwk: JWK, roles: readonly string[]): Configuration {
  return {
    jwks: { keys: [jwk] },
    clients: roles.map((role) => ({
      client_id: role,
      client_secret: clientSecret,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    })),
    cookies: { keys: ['a-key-of-the-test'] },
    ttl: { ClientCredentials: 300 },
    extraTokenClaims: (_context, token) => ({ roles: [token.clientId ?? ''] }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'urn:redrive',
        getResourceServerInfo: () => ({
          scope: '',
          audience,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  };
}
