import { hostname, userInfo } from 'node:os';
import { messageOf } from '../../kernel/errors.ts';
import { ApiError, type ApiErrorFacts } from '../api/api-error.ts';
import type { ApiArgs } from '../api/api-options.ts';
import { sendRequest, type HttpAnswer } from '../api/send-request.ts';
import { UsageError } from '../exit-code.ts';
import { parseExactJson } from '../output/exact-json.ts';
import type { Terminal } from '../terminal.ts';

type TextPost = Readonly<{
  path: readonly string[];
  headers: Readonly<Record<string, string>>;
  body: string;
}>;

type ErrorAnswer = Readonly<{
  error?: Readonly<{
    code?: string;
    message?: string;
    request_id?: string;
    details?: ApiErrorFacts['details'];
  }>;
}>;

const defaultUrl = 'http://127.0.0.1:8080';
const timeoutMs = 30_000;

/**
 * Posts JSON text as it stands. The API client writes a body's JSON itself, which would round the numbers in a
 * request and lose a name that stands in it twice.
 */
export async function postText(
  { terminal, args }: Readonly<{ terminal: Terminal; args: ApiArgs }>,
  { path, headers, body }: TextPost,
): Promise<Readonly<{ text: string; value: unknown; isNew: boolean }>> {
  const url = serverUrl(terminal.env, args);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${path.map(encodeURIComponent).join('/')}`;
  const actor = Buffer.from(args.actor ?? ownName(terminal.env)).toString('latin1');
  const answer = await sendRequest({
    method: 'POST',
    url,
    headers: { ...headers, accept: 'application/json', 'x-actor': actor },
    body,
    timeoutMs,
  });
  const value = readJson(answer);
  if (answer.status < 200 || answer.status > 299) throw refusal(answer, value);
  if (value === undefined)
    throw new ApiError(
      `${url.origin} answered with something that is not Redrive's API: check --url or REDRIVE_URL`,
      { status: answer.status },
    );
  return { text: answer.text, value, isNew: answer.status === 201 };
}

function serverUrl(env: NodeJS.ProcessEnv, args: ApiArgs): URL {
  const url = URL.parse(args.url ?? (env['REDRIVE_URL'] || defaultUrl));
  const source = args.url === undefined ? 'REDRIVE_URL' : '--url';
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new UsageError(`${source} is not a URL with http:// or https://, such as ${defaultUrl}`);
  url.search = '';
  url.hash = '';
  return url;
}

function ownName(env: NodeJS.ProcessEnv): string {
  return `${env['USER'] || env['USERNAME'] || accountName()}@${hostname()}`;
}

/** In a container the user may have no name at all. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}

function readJson({ contentType, text }: HttpAnswer): unknown {
  if (!contentType.startsWith('application/json')) return undefined;
  try {
    return parseExactJson(text);
  } catch (error) {
    throw new ApiError(`the answer is no JSON: ${messageOf(error)}`);
  }
}

function refusal({ status, requestId }: HttpAnswer, value: unknown): ApiError {
  const { error } = (value ?? {}) as ErrorAnswer;
  if (error?.message === undefined)
    return new ApiError(`the answer is HTTP ${status}, and not from Redrive: check --url or REDRIVE_URL`, {
      status,
      requestId,
    });
  return new ApiError(error.message, {
    status,
    code: error.code,
    requestId: error.request_id ?? requestId,
    details: error.details ?? [],
  });
}
