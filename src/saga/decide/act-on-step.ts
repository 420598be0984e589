import type { Act } from '../../kernel/audit/act.ts';
import { AppError } from '../../kernel/errors.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import { advanceByOperator, type Refusal, type StepDecision } from '../domain/advance-by-operator.ts';
import type { Status } from '../domain/saga-state.ts';
import { isSafeToRepeat } from '../domain/step-log.ts';
import { fromStored } from '../domain/workflow/workflow-hash.ts';
import { busy, throwNotFound } from '../saga-errors.ts';
import { stateOf } from '../saga-table.ts';
import { findAdoption } from './adopt-saga.ts';
import {
  archivedStatus,
  hasEnded,
  lockSaga,
  lockTimeout,
  readLog,
  refuse,
  settleLocked,
  shortLockTimeout,
  unlessLocked,
  withCleanReason,
  type DecideDeps,
  type Settled,
} from './locked-saga.ts';

/** What an operator does with a stuck step, which is identified by its name. */
export type StepRequest = StepDecision & Readonly<{ stepName: string }>;

export type StepResult =
  | Readonly<{ outcome: 'not_found'; what: 'saga' | 'step' }>
  /** Another transaction has locked the saga. */
  | Readonly<{ outcome: 'busy' }>
  | Refusal
  /** In bulk only: the call may have taken effect, and its service is not idempotent. */
  | Readonly<{ outcome: 'not_idempotent' }>
  | Readonly<{ outcome: 'done'; status: Status }>;

/**
 * One of many: it applies only if the saga still has this epoch. Unless the operator named the saga, nobody has looked
 * at it.
 */
export type BulkAction = Readonly<{ epoch: bigint; isNamed: boolean }>;

/** It is recorded with its change; a bulk action is recorded as a whole. */
export type SingleAction = Readonly<{ act: Act }>;

export type AnsweredStep = Readonly<{ status: Status; message: string }>;

const messages: Readonly<Record<StepRequest['kind'], string>> = {
  retry: 'retrying the step with a new budget',
  skip: 'continuing without the step',
  resolve: 'recorded the outcome of the step',
};

export async function actOnStep(
  deps: DecideDeps & Readonly<{ log: Logger }>,
  sagaId: string,
  request: StepRequest & Readonly<{ act: Act }>,
): Promise<AnsweredStep> {
  const { kind, stepName, by, act } = request;
  const result = await settleStep(deps, sagaId, request, { act });
  switch (result.outcome) {
    case 'not_found':
      return result.what === 'saga'
        ? throwNotFound(`saga not found: saga_id=${sagaId}`)
        : throwNotFound(`the saga has no such step: saga_id=${sagaId}, step=${stepName}`);
    case 'busy':
      throw busy('another open transaction holds this saga');
    case 'refused':
      throw refusalError(result);
    case 'not_idempotent':
      throw new Error('only bulk retries check whether a service is idempotent');
    case 'done': {
      const { status } = result;
      deps.log.info(
        { saga_id: sagaId, step: stepName, action: kind, status, actor: by.actor, reason: by.reason },
        'applied operator action to step',
      );
      return { status, message: messages[kind] };
    }
  }
}

function refusalError({ kind, message, retryAfterMs }: Refusal): AppError {
  const code = kind === 'conflict' ? 'SYS_SAGA_CONFLICT' : 'SYS_SAGA_UNPROCESSABLE';
  return new AppError(code, kind, message, retryAfterMs === undefined ? {} : { retryAfterMs });
}

export async function settleStep(
  deps: DecideDeps,
  sagaId: string,
  asked: StepRequest,
  how: SingleAction | BulkAction,
): Promise<StepResult> {
  const request = withCleanReason(asked);
  const bulk = 'act' in how ? undefined : how;
  const result = await unlessLocked(
    deps.db,
    bulk === undefined ? lockTimeout : shortLockTimeout,
    async (tx) => {
      const settled = await settleIn(deps, tx, sagaId, { request, bulk });
      if ('act' in how && settled.outcome === 'settled') await record(tx, request, how.act, settled);
      return settled;
    },
  );
  if (result.outcome !== 'settled') return result;
  deps.onSettled?.(result.before, result.after);
  return { outcome: 'done', status: result.after.state.status };
}

function record(tx: Queryable, request: StepRequest, act: Act, { before, after }: Settled): Promise<void> {
  return recordAct(tx, act, {
    resource: `saga/sagas/${before.id}`,
    names: { workflows: [before.workflow.name] },
    detail: {
      event: request.kind,
      step: request.stepName,
      ...(request.kind === 'resolve' ? { outcome: request.outcome } : {}),
      from: before.state.status,
      to: after.state.status,
    },
  });
}

async function settleIn(
  deps: DecideDeps,
  tx: Queryable,
  sagaId: string,
  { request, bulk }: Readonly<{ request: StepRequest; bulk: BulkAction | undefined }>,
): Promise<Settled | Exclude<StepResult, Readonly<{ outcome: 'done' }>>> {
  const found = await lockSaga(tx, sagaId);
  if (found === null) {
    const ended = await archivedStatus(tx, sagaId);
    return ended === null ? { outcome: 'not_found', what: 'saga' } : refuse('conflict', hasEnded(ended));
  }
  if (bulk !== undefined && found.lease_epoch !== bulk.epoch)
    return refuse('conflict', 'the saga has changed since it was selected');
  const log = await readLog(tx, sagaId);
  const adoption = found.definition === null ? await findAdoption(tx, found, log) : null;
  if (adoption !== null && 'flaw' in adoption) return refuse('conflict', adoption.flaw);
  const workflow = adoption?.workflow ?? fromStored(found.definition);
  const step = workflow.steps.findIndex(({ name }) => name === request.stepName);
  if (step < 0) return { outcome: 'not_found', what: 'step' };
  if (request.kind === 'resolve' && request.outcome === 'not_done' && found.stuck_op === 'COMPENSATE')
    return refuse('semantic', 'an undo can only be resolved as done: retry it, or undo it by hand first');
  const { log: attempts, stuck } = stateOf(found, log);
  const service = deps.serviceOf(workflow.steps[step]?.service ?? '');
  if (bulk?.isNamed === false && stuck !== null && !isSafeToRepeat(service, attempts, stuck))
    return { outcome: 'not_idempotent' };
  return settleLocked(deps, tx, { found, workflow, adoption, log }, (state, context) =>
    advanceByOperator(workflow, state, { ...request, step }, context),
  );
}
