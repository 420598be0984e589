import { setTimeout as wait } from 'node:timers/promises';
import { AppError } from '../../../kernel/errors.ts';

/** One call of a saga to the participant under test. */
export type ProbeCall = Readonly<{
  sagaId: string;
  op: 'action' | 'undo';
  step?: string;
  attempt?: number;
  /** Default: the sample body. */
  body?: unknown;
  /** Latest start. Default: in five minutes. */
  deadline?: Date;
  /** Start of its saga. Default: one second ago. */
  startedAt?: Date;
  /** Headers to omit. */
  without?: readonly string[];
}>;

/** An answer in terms of HTTP; `status` 0 means no answer. */
export type ProbeReply = Readonly<{
  status: number;
  /** The protocol's own status: `HTTP 409`, `gRPC ABORTED`. */
  label: string;
  text: string;
  /** Header or trailer saga-result. */
  result: string | null;
  retryAfterMs: number | null;
}>;

export type ProbedParticipant = Readonly<{
  /** Polls while the participant answers `working`, as a saga does. */
  ask(call: ProbeCall): Promise<ProbeReply>;
  close(): Promise<void>;
}>;

export type ParticipantOptions = Readonly<{
  url: URL;
  /** `POST /reserve`, or `shop.v1.Inventory.Reserve`. */
  methods: Readonly<Record<ProbeCall['op'], string>>;
  bodies: Readonly<Record<ProbeCall['op'], unknown>>;
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
}>;

const STEP = 'redrive-probe';
const STARTS_WITHIN_MS = 300_000;
const POLL_MS = 200;
export const MAX_POLL_MS = 5000;
export const MAX_ANSWER_BYTES = 262_144;

/** Polls until the answer is not `working`, or until the timeout. */
export async function pollUntilEnd(send: () => Promise<ProbeReply>, timeoutMs: number): Promise<ProbeReply> {
  const endsAtMs = performance.now() + timeoutMs;
  for (;;) {
    const reply = await send();
    if (reply.status !== 202 || performance.now() >= endsAtMs) return reply;
    await wait(Math.min(reply.retryAfterMs ?? POLL_MS, MAX_POLL_MS));
  }
}

/** The headers that a saga sends. */
export function sagaHeadersOf(call: ProbeCall): Readonly<Record<string, string>> {
  const { sagaId, step = STEP, attempt = 1 } = call;
  const now = Date.now();
  const op = call.op === 'action' ? 'action' : 'compensate';
  const headers = {
    'saga-id': sagaId,
    'saga-step': step,
    'saga-op': op,
    'saga-attempt': String(attempt),
    'saga-epoch': '1',
    'idempotency-key': `${sagaId}:${step}:${op}`,
    'saga-started-at': (call.startedAt ?? new Date(now - 1000)).toISOString(),
    'saga-deadline': (call.deadline ?? new Date(now + STARTS_WITHIN_MS)).toISOString(),
  };
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => call.without?.includes(name) !== true),
  );
}

export function noAnswer(why: string): ProbeReply {
  return { status: 0, label: 'no answer', text: why, result: null, retryAfterMs: null };
}

export function unreachable({ host }: URL, why: string): AppError {
  return new AppError(
    'SYS_SAGA_PARTICIPANT_UNREACHABLE',
    'unavailable',
    `cannot reach the participant at ${host}: ${why}`,
  );
}
