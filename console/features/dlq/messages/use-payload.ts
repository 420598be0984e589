import { useQuery } from '@tanstack/react-query';
import { useApi } from '../../../components/session/api-context.ts';
import { decodeBase64 } from '../../../lib/bytes/base64.ts';
import { decodeText } from '../../../lib/bytes/decode-text.ts';
import type { Api, FirstBytes } from '../../../lib/api/api-client.ts';
import { ApiFailure } from '../../../lib/api/api-failure.ts';
import { memberText } from '../../../lib/exact-json/member-text.ts';
import type { Message, Operations } from '../../../lib/server-shapes.ts';
import { messagePath } from './use-message.ts';

export type RevealedMessage = Operations['revealMessage']['answer'];

/** A message as it is shown, and what a reveal returned. */
export type RevealedProps = Readonly<{ message: Message; revealed?: RevealedMessage | null }>;

/** The value of a message, as far as it may be shown. */
export type Payload =
  | Readonly<{ kind: 'none' }>
  | Readonly<{ kind: 'protected' }>
  | Readonly<{ kind: 'stored' | 'masked' | 'revealed' } & FirstBytes>;

const shownBytes = 262_144;

export function usePayload(message: Message, revealed: RevealedMessage | null, isEnabled: boolean) {
  const api = useApi();
  const { id, version } = message;
  const query = useQuery({
    queryKey: ['dlq', 'value', id, version],
    queryFn: ({ signal }) => readPayload(api, { id, version }, signal),
    enabled: isEnabled && revealed === null,
    staleTime: Infinity,
  });
  return revealed === null ? query : { ...query, data: payloadOf(revealed), error: null, isFetching: false };
}

export function valuePath({ id, version }: Stored): string {
  return `${messagePath(id)}/value?version=${version}`;
}

type Stored = Pick<Message, 'id' | 'version'>;

/** As stored, unless parts are protected: then with masks. */
async function readPayload(api: Api, stored: Stored, signal: AbortSignal): Promise<Payload> {
  try {
    return { kind: 'stored', ...(await api.readBytes(valuePath(stored), shownBytes, signal)) };
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return { kind: 'none' };
    if (isProtected(error)) return readMasked(api, stored.id, signal);
    throw error;
  }
}

/** The masked value is part of the message, and is shown with the digits of its numbers. */
async function readMasked(api: Api, id: string, signal: AbortSignal): Promise<Payload> {
  const { bytes } = await api.readBytes(messagePath(id), shownBytes, signal);
  const text = memberText(decodeText(bytes, false).text, 'payload');
  if (text === null || text === 'null') return { kind: 'protected' };
  return { kind: 'masked', ...firstBytes(new TextEncoder().encode(text)) };
}

function payloadOf({ value_base64: base64 }: RevealedMessage): Payload {
  return base64 === null ? { kind: 'none' } : { kind: 'revealed', ...firstBytes(decodeBase64(base64)) };
}

function firstBytes(whole: Uint8Array<ArrayBuffer>): FirstBytes {
  return { bytes: whole.subarray(0, shownBytes), size: whole.length };
}

/** The server returns no bytes of a record with protected parts. */
export function isProtected(error: unknown): boolean {
  return error instanceof ApiFailure && error.code === 'SYS_DLQ_PROTECTED';
}
