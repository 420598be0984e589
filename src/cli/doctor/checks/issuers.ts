import type { Config } from '../../../config/config.ts';
import { messageOf } from '../../../kernel/errors.ts';
import { ok, problem, skipped, warning, type Finding } from '../finding.ts';

/** Logins would fail too if the issuer took longer. */
const timeoutMs = 5000;

type Metadata = Readonly<Record<string, unknown>>;

/** Whether the issuers of tokens and logins answer, and have what the configuration needs. */
export async function examineIssuers({ auth }: Pick<Config, 'auth'>): Promise<Finding> {
  const issuers = [...new Set([auth.jwt?.issuer, auth.oidc?.issuer].filter((one) => one !== undefined))];
  if (issuers.length === 0) return skipped('issuer', 'no authentication by an issuer');
  const known = new Map<string, Metadata>();
  for (const issuer of issuers) {
    const found = await readMetadata(issuer).catch((error: unknown) => messageOf(error));
    if (typeof found === 'string')
      return problem(
        'issuer',
        `${issuer}: ${found}`,
        'check the address; without it nobody logs in, and tokens with unknown keys get 503',
      );
    known.set(issuer, found);
  }
  const missing = missingIn(auth, (issuer) => known.get(issuer) ?? {});
  if (missing !== undefined) return problem('issuer', missing, 'enable it for the client at the issuer');
  if (auth.oidc !== null && auth.oidc.session.keys === null)
    return warning(
      'issuer',
      'auth.session.keys is not set',
      'set it: without it a login fails that begins on one replica and ends on another, or lasts across a restart',
    );
  return ok('issuer', issuers.join(', '));
}

function missingIn(
  { jwt, oidc, cli }: Config['auth'],
  metadataOf: (issuer: string) => Metadata,
): string | undefined {
  const lacks = (issuer: string, endpoint: string): boolean =>
    typeof metadataOf(issuer)[endpoint] !== 'string';
  if (oidc !== null && lacks(oidc.issuer, 'authorization_endpoint'))
    return `${oidc.issuer} names no authorization_endpoint, which logins in the console need`;
  if (jwt !== null && cli !== null && lacks(jwt.issuer, 'device_authorization_endpoint'))
    return `${jwt.issuer} names no device_authorization_endpoint, which redrive login needs`;
  return undefined;
}

async function readMetadata(issuer: string): Promise<Metadata> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(timeoutMs) });
  if (response.status !== 200) throw new Error(`${url} answered with status ${response.status}`);
  const metadata = (await response.json()) as Metadata;
  if (metadata['issuer'] !== issuer) throw new Error(`${url} names another issuer`);
  return metadata;
}
