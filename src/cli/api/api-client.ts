import { createRedriveClient, type Answer, type OperationId } from '../../client-http/index.ts';
import { parseExactJson } from '../output/exact-json.ts';
import { sendRequest } from './send-request.ts';

/** An operation of the API, and the fields of its path, query and body. */
export type ApiCall = Readonly<{
  id: OperationId;
  input: Readonly<Record<string, unknown>>;
  idempotencyKey?: string;
  ifMatch?: string | undefined;
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}>;

export type ApiClient = Readonly<{
  /** Throws an ApiError unless the status is 2xx. */
  call<T>(call: ApiCall): Promise<Answer<T>>;
}>;

/** As database.statement_timeout by default: no answer takes longer. */
const timeoutMs = 30_000;

export function createApiClient({
  token,
  ...options
}: Readonly<{ url: URL; actor: string; token?: string | undefined }>): ApiClient {
  const client = createRedriveClient({
    ...options,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    timeoutMs,
    transport: sendRequest,
    parseJson: parseExactJson,
    hint: ': check --url or REDRIVE_URL',
    // A person is waiting: they see the error at once.
    retries: 0,
  });
  return { call: ({ id, input, ...given }) => client.call(id, input, given) };
}
