import type { Check } from '../check.ts';
import { isLoopback } from '../formats/host-format.ts';
import { openSecret, type SecretSource } from '../layers/secret-value.ts';
import type { Secret } from '../layers/secret.ts';
import type { Settings } from '../schema.ts';

/** Logins of people in the console. */
export type OidcConfig = Readonly<{
  issuer: string;
  clientId: string;
  /** Null: a public client. */
  clientSecret: SecretSource | null;
  scopes: readonly string[];
  rolesClaim: string;
  nameClaim: string;
  /** Under which people reach the server; without a final slash. */
  publicUrl: string;
  session: Readonly<{ idleMs: number; absoluteMs: number; keys: SecretSource | null }>;
}>;

/** What `redrive login` needs to know. */
export type CliLoginConfig = Readonly<{ clientId: string; scopes: readonly string[] }>;

type Given = Readonly<{ auth: Settings['auth']; publicUrl: string | undefined; isProduction: boolean }>;

/** Null without a provider. */
export function resolveOidc({ auth, publicUrl, isProduction }: Given, check: Check): OidcConfig | null {
  const { issuer, clientId, clientSecret, scopes, rolesClaim, nameClaim } = auth.oidc;
  if (issuer === undefined) {
    if (clientId !== undefined)
      check.report(['auth.oidc.issuer'], 'is missing, but auth.oidc.client_id is set');
    return null;
  }
  requireHttps('auth.oidc.issuer', issuer, isProduction, check);
  if (clientId === undefined)
    check.report(['auth.oidc.client_id', 'auth.oidc.issuer'], 'is missing: the provider has a client for us');
  checkPublicUrl(publicUrl, check);
  checkAudience(auth, check);
  const keys = secretSource('auth.session.keys', auth.session.keys, check, reasonAgainstKeys);
  if (keys === null && isProduction)
    check.report(
      ['auth.session.keys', 'auth.oidc.issuer'],
      'is missing: without it a login would begin on one replica and fail on another',
    );
  if (auth.session.idleMs > auth.session.absoluteMs)
    check.report(
      ['auth.session.idle', 'auth.session.absolute'],
      'must not be longer than auth.session.absolute',
    );
  return {
    issuer,
    clientId: clientId ?? '',
    clientSecret: secretSource('auth.oidc.client_secret', clientSecret, check),
    scopes: [...new Set(['openid', ...scopes])],
    rolesClaim,
    nameClaim,
    publicUrl: (publicUrl ?? '').replace(/\/+$/, ''),
    session: { idleMs: auth.session.idleMs, absoluteMs: auth.session.absoluteMs, keys },
  };
}

export function resolveCliLogin({ cli, jwt }: Settings['auth'], check: Check): CliLoginConfig | null {
  if (cli.clientId === undefined) return null;
  if (jwt.issuer === undefined)
    check.report(['auth.cli.client_id', 'auth.jwt.issuer'], 'requires auth.jwt: the login gives a token');
  return { clientId: cli.clientId, scopes: cli.scopes };
}

/** Whoever is in between could replace the keys of the issuer. */
export function requireHttps(path: string, issuer: string, isProduction: boolean, check: Check): void {
  if (URL.parse(issuer)?.protocol === 'http:' && (isProduction || !isLocal(issuer)))
    check.report([path], 'must be an https:// URL: whoever is in between could replace its keys');
}

/** The provider sends people back to it, and its host is that of the cookies. */
function checkPublicUrl(publicUrl: string | undefined, check: Check): void {
  const paths = ['server.public_url', 'auth.oidc.issuer'] as const;
  if (publicUrl === undefined)
    check.report(paths, 'is missing: auth.oidc needs it, because the provider sends people back to it');
  else if (URL.parse(publicUrl)?.protocol === 'http:' && !isLocal(publicUrl))
    check.report(paths, 'must be an https:// URL with auth.oidc: without TLS others could read the cookies');
}

function isLocal(url: string): boolean {
  return isLoopback(URL.parse(url)?.hostname.replace(/^\[(.*)\]$/, '$1') ?? '');
}

/** An ID token names the client as its audience, so it would pass for an access token. */
function checkAudience({ oidc, jwt }: Settings['auth'], check: Check): void {
  if (oidc.clientId !== undefined && oidc.clientId === jwt.audience && jwt.requireTyp === undefined)
    check.report(
      ['auth.jwt.audience', 'auth.oidc.client_id'],
      'must not be auth.oidc.client_id, unless auth.jwt.require_typ is at+jwt: ID tokens would pass for access tokens',
    );
}

function secretSource(
  path: string,
  secret: Secret | undefined,
  { given, report }: Check,
  reasonAgainst: (text: string) => string | undefined = () => undefined,
): SecretSource | null {
  if (secret === undefined) return null;
  const text = secret.reveal();
  const reason = text === '' ? 'more than nothing' : reasonAgainst(text);
  if (reason !== undefined) report([path], `must be ${reason}`);
  const file = given.get(path)?.file;
  return openSecret(file === undefined ? text : { file }, reasonAgainst);
}

const minKeyLength = 32;
const maxKeys = 10;

function reasonAgainstKeys(text: string): string | undefined {
  const keys = text.split(/\s+/).filter((key) => key !== '');
  const isRight =
    keys.length > 0 && keys.length <= maxKeys && keys.every((key) => key.length >= minKeyLength);
  return isRight ? undefined : `1 to ${maxKeys} keys of ${minKeyLength} characters or more each`;
}
