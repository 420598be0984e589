/** What a service imports: `import { jobs, outbox, saga } from '@redrive/client'`. Nothing of the server is loaded with it. */
export { busy, notRetryable, retryAfter, snooze } from '../jobs/domain/handler-signals.ts';
export type { JobContext } from '../jobs/domain/job-context.ts';
export type { EnqueuedJob, EnqueueOptions, NewJob } from './enqueue.ts';
export type { Job, JobHandler } from './job-handler.ts';
export type { JobEvent, JobOutcome } from './job-event.ts';
export { jobs } from './jobs.ts';
export type {
  JobWorker,
  JobWorkers,
  StopOptions,
  WorkersOptions,
  WorkerState,
  WorkOptions,
} from './jobs-worker.ts';
export { outbox } from './outbox.ts';
export type { AddedOrder, NewOrder } from './outbox.ts';
export type { PostgresClient, PostgresPool } from './postgres-pool.ts';
export { defineQueue } from './queue.ts';
export type { PayloadSchema, Queue, SchemaIssue, SchemaResult, StandardSchema } from './queue.ts';
export { saga } from './saga.ts';
export type { SagaAfterPivot, SagaBuilder, SagaOptions, SagaWorkflow } from './saga-builder.ts';
export { required, text } from './saga-reference.ts';
export type { Mapped, Ref } from './saga-reference.ts';
export { call, service } from './saga-service.ts';
export type { Call, Method, Operation, PathValues } from './saga-service.ts';
export type { StartedSaga, StartOptions } from './saga-start.ts';
export { expressHandler } from './saga-guard/express-handler.ts';
export { fastifyHandler } from './saga-guard/fastify-handler.ts';
export { grpcHandler } from './saga-guard/grpc-handler.ts';
export type { GuardRequest, SagaCall } from './saga-guard/guard-call.ts';
export { refuse } from './saga-guard/guard-reply.ts';
export type { GuardReply, SagaRefusal } from './saga-guard/guard-reply.ts';
export { sagaGuardMigration } from './saga-guard/guard-table.ts';
export type { ActionHandler, Guarded } from './saga-guard/guarded-action.ts';
export type { UndoCall, UndoHandler } from './saga-guard/guarded-undo.ts';
export type { LongAction } from './saga-guard/long-action.ts';
export { sagaGuard } from './saga-guard/saga-guard.ts';
export type { SagaGuard, SagaGuardOptions } from './saga-guard/saga-guard.ts';
export type { Transaction } from './transaction.ts';
