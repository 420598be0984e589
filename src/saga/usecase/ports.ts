import type { Lease } from '../../kernel/lease.ts';
import type { Call, Published } from '../domain/decide.ts';
import type { Answer } from '../domain/judge-answer.ts';
import type { Attempt, Known, SagaState } from '../domain/saga-state.ts';
import type { Workflow } from '../domain/workflow.ts';

/** What the use cases need from outside. */

/** A saga that this process has claimed. */
export type HeldSaga = Readonly<{
  id: string;
  workflow: Workflow;
  payload: unknown;
  /** On the database's clock. */
  startedAt: number;
  trace: string | null;
  state: SagaState;
  /** Whoever had it before was not heard of any more. */
  wasLost: boolean;
  /** How many rounds in a row came to nothing: see setbacks.ts. */
  setbacks: number;
  /** Nothing else may run beside it. */
  runsAlone: boolean;
  /** About as many as it takes here: its payload, and what its steps have answered. */
  bytes: number;
  lease: Lease;
}>;

/** The opening of an attempt has the request that will be sent. */
export type AddedAttempt = Attempt & Readonly<{ request?: unknown }>;

/** One step of a saga, to be written as a whole or not at all. */
export type SagaSettle = Readonly<{
  saga: Pick<HeldSaga, 'id' | 'lease' | 'workflow'>;
  /** What it was decided with: where more is known by now, nothing is written. */
  known: Known;
  state: SagaState;
  changed: readonly Attempt[];
  added: readonly AddedAttempt[];
  events: readonly Published[];
  /** A call follows; otherwise the saga is let go. */
  keepsLease: boolean;
  /** As of the saga; none, and false, where an answer or a person has moved it. */
  setbacks?: number;
  runsAlone?: boolean;
}>;

export type SettleResult =
  | Readonly<{ outcome: 'settled' }>
  /** It is to be decided again with this. */
  | Readonly<{ outcome: 'outdated'; known: Known }>
  /** It was somebody else's by then. */
  | Readonly<{ outcome: 'stale' }>
  /** The database refuses what was to be written. */
  | Readonly<{ outcome: 'unstorable'; reason: string }>;

export type ClaimOptions = Readonly<{
  limit: number;
  /** Of those that are due only as many as have this size together are taken, and always one. */
  bytes: number;
  leaseMs: number;
  /** Those that are to run alone have a lane of their own. */
  lane: 'together' | 'alone';
}>;

export type SagaStore = Readonly<{
  claim(options: ClaimOptions): Promise<readonly HeldSaga[]>;
  /** Results in the order of the settles. Rejects where nobody knows whether they were written. */
  settle(settles: readonly SagaSettle[]): Promise<readonly SettleResult[]>;
  /** Lets go a saga that could not be dealt with here, as a setback; it is due again after the pause. */
  setBack(saga: Pick<HeldSaga, 'id' | 'lease'>, pauseMs: number): Promise<void>;
  /** Prolongs leases. `locked`: still ours, but somebody has the row, and the lease is as it was; all others are lost. */
  renew(
    sagas: readonly Pick<HeldSaga, 'id' | 'lease'>[],
    leaseMs: number,
  ): Promise<Readonly<{ ids: readonly string[]; locked: readonly string[]; endsAtMs: number }>>;
  /** Lets the sagas of lost workers be claimed; how many. */
  reap(): Promise<number>;
  /** Whether a saga is due that is to run alone, and nobody has one: one process at a time makes room. */
  hasAlone(): Promise<boolean>;
  /** In how many milliseconds the next saga is due; null where none waits for a time. */
  nextDueInMs(): Promise<number | null>;
}>;

/** A request as it leaves. */
export type OutgoingCall = Readonly<{
  saga: Pick<HeldSaga, 'id' | 'startedAt' | 'trace'>;
  call: Call;
  stepName: string;
  epoch: bigint;
  request: unknown;
  /** The path of an HTTP call with its references filled in. */
  method: string;
  /** The saga's payload as it is, which may hold more than the participant knows. */
  isPayload: boolean;
  /** Asked right before a byte leaves: whether the saga is still ours. */
  mayBegin: () => boolean;
}>;

/** Never rejects: whatever happens is an answer. */
export type SendCall = (call: OutgoingCall) => Promise<Answer>;
