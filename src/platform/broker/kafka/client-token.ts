import { messageOf } from '../../../kernel/errors.ts';
import type { KafkaLogin } from './sasl.ts';

export type ClientTokenOptions = Readonly<{
  /** The token endpoint of an OAuth 2.0 issuer. */
  url: string;
  scope: string | undefined;
  /** The id and the secret of the client; read for every token. */
  client: () => Promise<KafkaLogin>;
  timeoutMs?: number;
}>;

type TokenAnswer = Readonly<{ access_token?: unknown; expires_in?: unknown }>;

/** A token that ends sooner is not handed out any more. */
const spareMs = 30_000;
/** For an issuer that does not say how long its tokens last. */
const usualSeconds = 60;
const maxAnswerChars = 65_536;

/**
 * Access tokens by the client credentials grant (RFC 6749, 4.4). Connections that open at the same time share one
 * request, and a token is used until shortly before its end.
 */
export function createClientToken(options: ClientTokenOptions): () => Promise<string> {
  let known: Readonly<{ token: string; untilMs: number }> | undefined;
  let asking: Promise<string> | undefined;
  const ask = async (): Promise<string> => {
    const askedAtMs = performance.now();
    const { token, seconds } = await requestToken(options);
    known = { token, untilMs: askedAtMs + seconds * 1000 - spareMs };
    return token;
  };
  return async () => {
    if (known !== undefined && performance.now() < known.untilMs) return known.token;
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return asking;
  };
}

async function requestToken({ url, scope, client, timeoutMs = 5000 }: ClientTokenOptions) {
  const { username, password } = await client();
  // Both are form-encoded before they are joined (RFC 6749, 2.3.1).
  const pair = [username, password].map(encodeURIComponent).join(':');
  const grant = new URLSearchParams({ grant_type: 'client_credentials', ...(scope ? { scope } : {}) });
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
        accept: 'application/json',
      },
      body: grant,
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`status ${response.status}`);
    return readToken(text);
  } catch (error) {
    throw new Error(`no token for Kafka from ${url}: ${messageOf(error)}`, { cause: error });
  }
}

function readToken(text: string): Readonly<{ token: string; seconds: number }> {
  const answer =
    text.length > maxAnswerChars ? null : (JSON.parse(text) as TokenAnswer | null | string | number);
  if (typeof answer !== 'object' || answer === null) throw new Error('the answer is not a JSON object');
  const { access_token: token, expires_in: seconds = usualSeconds } = answer;
  // Anything else would break out of the message to the broker.
  if (typeof token !== 'string' || !/^[\w.~+/-]+=*$/.test(token))
    throw new Error('the answer has no access_token');
  return { token, seconds: Number.isFinite(Number(seconds)) ? Number(seconds) : usualSeconds };
}
