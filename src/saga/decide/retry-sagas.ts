import type { Act } from '../../kernel/audit/act.ts';
import type { Clock } from '../../kernel/clock.ts';
import { recordOperation } from '../../platform/audit/record-operation.ts';
import { isOutage } from '../../platform/postgres/sqlstate.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Operator } from '../domain/saga-state.ts';
import { throwNotFound } from '../saga-errors.ts';
import { settleStep } from './act-on-step.ts';
import {
  findStuck,
  isWorkflow,
  previewStuck,
  type FoundStuck,
  type RetryPreview,
  type SkippedSaga,
  type SkipReason,
  type StuckFilter,
  type StuckSaga,
} from './find-stuck.ts';
import type { DecideDeps } from './locked-saga.ts';

/**
 * Retries stuck sagas by filter. Matching sagas are selected once; then each one is retried in a transaction of its own
 * that checks again: a saga that has changed since is skipped. A request that is repeated after a lost response
 * continues with the rest.
 */
export type BulkRetryDeps = DecideDeps & Readonly<{ clock: Clock; log: Logger }>;

export type RetriedSagas = Readonly<{
  retried: number;
  skipped: number;
  /** The first ones. */
  skippedSagas: readonly SkippedSaga[];
  /** How many more match, as far as they were counted. */
  remaining: number;
  isMore: boolean;
}>;

/** Few enough to leave connections to others. */
const maxParallel = 4;
const maxListed = 100;
/** Below the 30 s after which many proxies give up; what is left is answered as such. */
const withinMs = 20_000;

export async function previewRetry(deps: BulkRetryDeps, filter: StuckFilter): Promise<RetryPreview> {
  await requireWorkflow(deps, filter);
  return previewStuck(deps.db, filter, deps);
}

export async function retrySagas(
  deps: BulkRetryDeps,
  { filter, limit, by, act }: Readonly<{ filter: StuckFilter; limit: number; by: Operator; act: Act }>,
): Promise<RetriedSagas> {
  const untilMs = deps.clock.monotonicMs() + withinMs;
  await requireWorkflow(deps, filter);
  const found = await findStuck(deps.db, filter, limit, deps);
  const isNamed = filter.sagaIds !== null;
  const retry = (saga: StuckSaga): Promise<SkipReason | null> => retrySaga(deps, saga, by, isNamed);
  const run = (): Promise<RetriedSagas> => retryFound({ ...deps, retry }, found, { by, untilMs });
  if (found.sagas.length === 0) return run();
  const { workflowName } = filter;
  const about = {
    resource: 'saga/sagas',
    ...(workflowName === null ? {} : { names: { workflows: [workflowName] } }),
    items: found.sagas.length,
    detail: { event: 'retry', filter: { ...filter, sagaIds: filter.sagaIds?.length ?? null } },
  };
  return recordOperation(deps.db, act, about, {
    run,
    endOf: ({ retried, skipped }) => ({ items: retried, detail: { event: 'retry', retried, skipped } }),
  });
}

/** A misspelt name must not look like there is nothing to retry. */
async function requireWorkflow({ db }: BulkRetryDeps, { workflowName }: StuckFilter): Promise<void> {
  if (workflowName !== null && !(await isWorkflow(db, workflowName)))
    throwNotFound(`workflow not found: workflow_name=${workflowName}`);
}

/** Null if it was retried. A call in doubt is repeated only if the operator named the saga. */
export async function retrySaga(
  deps: DecideDeps,
  { sagaId, stepName, epoch }: StuckSaga,
  by: Operator,
  isNamed: boolean,
): Promise<SkipReason | null> {
  const { outcome } = await settleStep(deps, sagaId, { kind: 'retry', stepName, by }, { epoch, isNamed });
  if (outcome === 'done') return null;
  return outcome === 'busy' || outcome === 'not_idempotent' ? outcome : 'changed';
}

export type RetryFoundDeps = Readonly<{
  clock: Clock;
  log: Logger;
  retry: (saga: StuckSaga) => Promise<SkipReason | null>;
}>;

/** One failing saga does not stop the others; an outage of the database does. */
export async function retryFound(
  { clock, log, retry }: RetryFoundDeps,
  found: FoundStuck,
  { by, untilMs }: Readonly<{ by: Operator; untilMs: number }>,
): Promise<RetriedSagas> {
  const skippedSagas: SkippedSaga[] = [...found.notRetryable];
  const outages: unknown[] = [];
  let retried = 0;
  let next = 0;
  const retryNext = async (): Promise<void> => {
    while (outages.length === 0 && clock.monotonicMs() < untilMs) {
      const saga = found.sagas[next++];
      if (saga === undefined) return;
      const { sagaId } = saga;
      const why = await retry(saga).catch((error: unknown): SkipReason => {
        log.warn({ saga_id: sagaId, err: error }, 'failed to retry stuck saga');
        if (isOutage(error)) outages.push(error);
        return 'failed';
      });
      if (why === null) retried += 1;
      else skippedSagas.push({ sagaId, why });
    }
  };
  await Promise.all(Array.from({ length: maxParallel }, retryNext));
  const skipped = skippedSagas.length;
  const remaining = Math.max(0, found.matched - retried - (skipped - found.notRetryable.length));
  log.info({ retried, skipped, actor: by.actor, reason: by.reason }, 'retried stuck sagas');
  // Retried sagas stay retried; a repeated request continues with the rest.
  if (outages.length > 0) throw outages[0];
  return {
    retried,
    skipped,
    skippedSagas: skippedSagas.slice(0, maxListed),
    remaining,
    isMore: remaining > 0 || !found.isAll,
  };
}
