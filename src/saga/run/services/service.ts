import type { Answer } from '../../domain/judge-answer.ts';
import type { Call } from '../../domain/settlement.ts';
import type { KnownMethods } from '../../domain/workflow/check-methods.ts';

/** A participant that can be called, over HTTP or gRPC. */
export type OpenService = Readonly<{
  send: SendCall;
  /** Its current methods; null if the service does not list them. Rejects if it cannot be asked. */
  methods(): Promise<KnownMethods | null>;
  /** Rejects if no connection is established within that time. */
  connect(withinMs: number): Promise<void>;
  close(): Promise<void>;
}>;

/** Never rejects: every failure is an answer. */
export type SendCall = (call: OutgoingCall) => Promise<Answer>;

export type OutgoingCall = Readonly<{
  saga: Readonly<{ id: string; startedAt: number; trace: string | null }>;
  call: Call;
  stepName: string;
  epoch: bigint;
  request: unknown;
  /** With the references in the path of an HTTP method filled in. */
  method: string;
  /** The request is the saga's payload, which may have fields that the participant does not know. */
  isPayload: boolean;
  /** Called right before the first byte is sent: whether the lease is still alive. */
  mayBegin: () => boolean;
}>;
