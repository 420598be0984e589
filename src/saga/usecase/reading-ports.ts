import type { Compensation, LogStatus, Op, Status } from '../domain/saga-state.ts';

/** What looking at sagas needs from outside. */

export type Saga = Readonly<{
  sagaId: string;
  workflowName: string;
  currentStep: number;
  status: Status;
  /** PostgreSQL's own JSON text; null where it was started without one, or where a list leaves it out. */
  payloadText: string | null;
  isPayloadOmitted: boolean;
  correlationId: string | null;
  initiatedBy: string | null;
  errorMessage: string | null;
  createdAt: Date;
  /** To the microsecond, for keysets. */
  createdAtExact: string;
  updatedAt: Date;
  compensation: Compensation;
  needsPerson: boolean;
  /** Where it waits for a person. */
  stuck: Readonly<{ stepName: string | null; op: Op; reason: string }> | null;
  deadlineAt: Date | null;
  /** Null where a system before ours has begun it. */
  definitionHash: string | null;
}>;

/** One attempt, as its row is shown. */
export type LoggedStep = Readonly<{
  id: string;
  stepIndex: number;
  stepName: string;
  action: Op;
  /** Null while the attempt is under way. */
  status: LogStatus | null;
  requestText: string | null;
  responseText: string | null;
  errorMessage: string | null;
  startedAt: Date;
  completedAt: Date | null;
  updatedAt: Date;
  attempt: number;
  actor: string | null;
  reason: string | null;
}>;

/** Both as they were at one moment. */
export type ToldSaga = Readonly<{ saga: Saga; steps: readonly LoggedStep[] }>;

export type SagaFilter = Readonly<{
  workflowName?: string | undefined;
  status?: Status | undefined;
  correlationId?: string | undefined;
  needsPerson?: boolean | undefined;
}>;

export type Keyset = Readonly<{ createdAt: string; sagaId: string }>;

export type ListWindow = Readonly<{ limit: number; offset: number; after: Keyset | null }>;

export type Count = Readonly<{ total: number; isEstimate: boolean }>;

export type SagaReader = Readonly<{
  /** Archived or not; its steps in their order, each with its attempts as they were started. */
  find(sagaId: string): Promise<ToldSaga | null>;
  /** Newest first, without those that are archived; and how many there are in all. */
  list(filter: SagaFilter, window: ListWindow): Promise<Readonly<{ sagas: readonly Saga[]; count: Count }>>;
}>;
