import { canonicalJson, sha256Of } from '../../kernel/canonical-json.ts';
import { messageOf } from '../../kernel/errors.ts';
import { readInstant } from '../../kernel/read-instant.ts';
import { findUnsafeInput } from '../../kernel/unsafe-input.ts';

/** An incoming call: headers or gRPC metadata with names in lower case, and the parsed body or message. */
export type GuardRequest = Readonly<{
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  body: unknown;
}>;

export type SagaOp = 'action' | 'compensate';

/** What a handler gets. */
export type SagaCall<Body = unknown> = Readonly<{
  sagaId: string;
  step: string;
  /** Of this action or undo, from 1; null if the header is missing. */
  attempt: number | null;
  /** When the saga was started. */
  startedAt: Date;
  body: Body;
}>;

/** A call with a valid key. The deadline is the latest time at which it may begin. */
export type GuardedCall = SagaCall & Readonly<{ op: SagaOp; deadline: Date; digest: string | null }>;

export type ReadCall = Readonly<{ ok: true; call: GuardedCall }> | Readonly<{ ok: false; flaw: string }>;

/** Both are in the primary key, and index entries are limited in size: enough for 255 encoded characters. */
const MAX_SAGA_ID_BYTES = 255;
const MAX_STEP_BYTES = 255 * 9;

/**
 * Reads the headers of a call to an action or an undo. A call of the other kind is refused: the workflow names the wrong
 * method, and an action would run as an undo.
 */
export function readGuardedCall({ headers, body }: GuardRequest, op: SagaOp): ReadCall {
  const sagaId = headerOf(headers, 'saga-id');
  const step = headerOf(headers, 'saga-step');
  if (!isKey(sagaId, MAX_SAGA_ID_BYTES)) return flawOf('saga-id');
  if (!isKey(step, MAX_STEP_BYTES)) return flawOf('saga-step');
  const said = headerOf(headers, 'saga-op');
  if (said !== op) {
    if (said === 'action' || said === 'compensate')
      return { ok: false, flaw: `saga-op is ${said}, but this is the ${nameOf(op)} of a step` };
    return flawOf('saga-op');
  }
  const startedAt = instantOf(headers, 'saga-started-at');
  if (startedAt === null) return flawOf('saga-started-at');
  const deadline = instantOf(headers, 'saga-deadline');
  if (deadline === null) return flawOf('saga-deadline');
  // An undo is identified by its saga and step alone.
  const digest = op === 'action' ? digestOf(body) : { ok: true as const, digest: null };
  if (!digest.ok) return digest;
  const attempt = attemptOf(headers);
  return { ok: true, call: { sagaId, step, op, attempt, startedAt, deadline, body, digest: digest.digest } };
}

function nameOf(op: SagaOp): string {
  return op === 'action' ? 'action' : 'undo';
}

function flawOf(header: string): ReadCall {
  return { ok: false, flaw: `${header} is missing or not readable: is the caller a saga?` };
}

/** A repeated header counts as missing. */
function headerOf(headers: GuardRequest['headers'], name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' || value === undefined ? value : value.length === 1 ? value[0] : undefined;
}

function isKey(text: string | undefined, maxBytes: number): text is string {
  return (
    text !== undefined &&
    text !== '' &&
    Buffer.byteLength(text) <= maxBytes &&
    findUnsafeInput(text, 'key') === null
  );
}

function instantOf(headers: GuardRequest['headers'], name: string): Date | null {
  return readInstant(headerOf(headers, name) ?? '');
}

function attemptOf(headers: GuardRequest['headers']): number | null {
  const text = headerOf(headers, 'saga-attempt') ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : null;
}

type Digest = Readonly<{ ok: true; digest: string }> | Readonly<{ ok: false; flaw: string }>;

/** The same digest for all spellings of a body. A missing body equals null. */
function digestOf(body: unknown): Digest {
  const unsafe = findUnsafeInput(body, 'body');
  if (unsafe !== null) return { ok: false, flaw: `${unsafe.field} ${unsafe.message}` };
  try {
    return { ok: true, digest: sha256Of(canonicalJson(body ?? null)) };
  } catch (error) {
    return { ok: false, flaw: `the body has no JSON form: ${messageOf(error)}` };
  }
}
