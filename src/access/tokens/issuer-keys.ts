import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from 'jose';
import { messageOf } from '../../kernel/errors.ts';

/** The issuer does not answer, so nobody can say whether the token is genuine. */
export class IssuerUnavailable extends Error {
  constructor(cause: unknown) {
    super(`the issuer is unavailable: ${messageOf(cause)}`, { cause });
    this.name = 'IssuerUnavailable';
  }
}

export type IssuerKeys = Readonly<{
  /** The key of a token. Throws IssuerUnavailable if the issuer has to be asked and does not answer. */
  keyFor: JWTVerifyGetKey;
  /** Loads the keys again. Throws if that fails; the known keys stay. */
  refresh(): Promise<void>;
  /** Why the issuer gave no answer when it was last asked; null if it did. */
  trouble(): string | null;
}>;

export type IssuerKeysOptions = Readonly<{
  issuer: string;
  /** A token with an unknown key causes a request at most this often. */
  cooldownMs?: number;
  /** After a failure nothing is asked for this long. */
  backoffMs?: number;
  timeoutMs?: number;
}>;

type RemoteKeys = ReturnType<typeof createRemoteJWKSet>;

/** What a token can be wrong about; everything else says that the issuer could not be asked. */
const faultsOfTokens = [
  errors.JWKSNoMatchingKey,
  errors.JWKSMultipleMatchingKeys,
  errors.JOSENotSupported,
  errors.JOSEAlgNotAllowed,
] as const;

/**
 * The keys of an issuer, found by its metadata when they are first needed: the server starts without it. Known keys are
 * used as long as the process runs, also while the issuer is unavailable; `refresh` drops those that it has withdrawn.
 */
export function createIssuerKeys(options: IssuerKeysOptions): IssuerKeys {
  const { issuer, cooldownMs = 5000, backoffMs = 1000, timeoutMs = 5000 } = options;
  const { ask, trouble } = createAsk(timeoutMs, backoffMs);
  let known: Readonly<{ uri: string; keys: RemoteKeys }> | undefined;
  let discovering: Promise<RemoteKeys> | undefined;

  async function discover(): Promise<RemoteKeys> {
    const uri = await findKeys(issuer, ask);
    if (known?.uri === uri) return known.keys;
    const keys = createRemoteJWKSet(new URL(uri), {
      cacheMaxAge: Number.POSITIVE_INFINITY,
      cooldownDuration: cooldownMs,
      timeoutDuration: timeoutMs,
      [customFetch]: ask,
    });
    // Until its keys are loaded a new address replaces no known keys.
    await keys.reload();
    known = { uri, keys };
    return keys;
  }

  const discoverOnce = (): Promise<RemoteKeys> =>
    (discovering ??= discover().finally(() => {
      discovering = undefined;
    }));

  return {
    async keyFor(header, token) {
      try {
        const keys = known?.keys ?? (await discoverOnce());
        return await keys(header, token);
      } catch (error) {
        if (faultsOfTokens.some((fault) => error instanceof fault)) throw error;
        throw new IssuerUnavailable(error);
      }
    },
    async refresh() {
      const before = known?.keys;
      const keys = await discoverOnce();
      if (keys === before) await keys.reload();
    },
    trouble,
  };
}

type Ask = (url: string, init?: RequestInit) => Promise<Response>;

/** Tokens with unknown keys must not become requests to an issuer that is down. */
function createAsk(
  timeoutMs: number,
  backoffMs: number,
): Readonly<{ ask: Ask; trouble: () => string | null }> {
  let failure: Readonly<{ error: unknown; untilMs: number }> | undefined;
  const ask: Ask = async (url, init) => {
    if (failure !== undefined && performance.now() < failure.untilMs) throw failure.error;
    try {
      const response = await fetch(url, {
        signal: AbortSignal.timeout(timeoutMs),
        ...init,
        redirect: 'error',
      });
      if (response.status !== 200) throw new Error(`${url} answered with status ${response.status}`);
      failure = undefined;
      return response;
    } catch (error) {
      failure = { error, untilMs: performance.now() + backoffMs };
      throw error;
    }
  };
  return { ask, trouble: () => (failure === undefined ? null : messageOf(failure.error)) };
}

/** The address of the keys, from the issuer's metadata (OpenID Connect Discovery). */
async function findKeys(issuer: string, ask: Ask): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const response = await ask(url, { headers: { accept: 'application/json' } });
  const metadata = (await response.json()) as Readonly<{ issuer?: unknown; jwks_uri?: unknown }> | null;
  if (metadata?.issuer !== issuer) throw new Error(`${url} names another issuer than ${issuer}`);
  const { jwks_uri: uri } = metadata;
  if (typeof uri !== 'string' || !URL.canParse(uri)) throw new Error(`${url} names no jwks_uri`);
  if (new URL(uri).protocol !== new URL(issuer).protocol && !uri.startsWith('https:'))
    throw new Error(`${url} names a jwks_uri without TLS`);
  return uri;
}
