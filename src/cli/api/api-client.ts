import {
  createRedriveClient,
  type Answer,
  type OperationId,
  type Transport,
} from '../../client-http/index.ts';
import { parseExactJson } from '../output/exact-json.ts';
import { sendForStream, sendRequest, type TakeBytes } from './send-request.ts';

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
  /** The same for an answer that may be larger than the memory: its text is handed over in parts. */
  stream(call: ApiCall, take: TakeBytes): Promise<void>;
}>;

/** As database.statement_timeout by default: no answer takes longer. */
const timeoutMs = 30_000;

export function createApiClient({
  token = async () => undefined,
  ...options
}: Readonly<{
  url: URL;
  actor: string;
  /** Asked before every call, because it may be renewed. */
  token?: () => Promise<string | undefined>;
}>): ApiClient {
  const clientWith = (authorization: string | undefined, transport: Transport) =>
    createRedriveClient({
      ...options,
      headers: authorization === undefined ? {} : { authorization },
      timeoutMs,
      transport,
      parseJson: parseExactJson,
      hint: ': check --url or REDRIVE_URL',
      // A person is waiting: they see the error at once.
      retries: 0,
    });
  const send = async <T>({ id, input, ...given }: ApiCall, transport: Transport): Promise<Answer<T>> => {
    const sent = await token();
    return clientWith(sent === undefined ? undefined : `Bearer ${sent}`, transport).call<T>(id, input, given);
  };
  return {
    call: (call) => send(call, sendRequest),
    async stream(call, take) {
      await send(call, sendForStream(take));
    },
  };
}
