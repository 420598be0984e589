import { readInstant } from '../../kernel/read-instant.ts';
import { maskBeginning, type Masks } from '../../kernel/protect/protection.ts';
import { formatInstant } from '../../kernel/timestamp.ts';
import { isUuid } from '../../kernel/uuid.ts';
import { scopeOfBody } from '../../platform/http/access/item-scope.ts';
import { byOf } from '../../platform/http/action-route.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import type { Op } from '../domain/saga-state.ts';
import { invalidInput } from '../saga-errors.ts';
import { defaultRetryLimit, RetriedSchema, RetryBody, retryCriteria } from './decide-schemas.ts';
import { shownReasonLength, type ErrorClass, type RetryPreview, type StuckFilter } from './find-stuck.ts';
import { previewRetry, retrySagas, type BulkRetryDeps, type RetriedSagas } from './retry-sagas.ts';

export function addRetryRoutes(
  app: HttpApp,
  deps: BulkRetryDeps & Readonly<{ masking: PayloadMasks }>,
): void {
  app.post(
    '/api/v1/sagas/retry',
    {
      config: {
        access: { permission: 'saga:sagas:repair', scope: scopeOfBody('workflows', 'workflow_name') },
      },
      schema: {
        operationId: 'retrySagas',
        summary: 'Retry the stuck sagas that match a filter',
        description:
          'Needs at least one filter, and a reason unless it is a preview. With `preview` nothing changes. If `has_more` is true, repeat the request.',
        errors: [404, 409],
        takesActor: true,
        body: RetryBody,
        response: { 200: RetriedSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const filter = filterOf(body);
      if (body.preview === true) {
        const preview = await previewRetry(deps, filter);
        return reply.send(presentPreview(preview, (workflow) => deps.masking.of(request, workflow)));
      }
      if (body.reason === undefined) throw invalidInput('reason', 'required', 'is missing');
      const { actor, act } = byOf(request, body.reason);
      const by = { actor, reason: body.reason };
      const limit = body.limit ?? defaultRetryLimit;
      return reply.send(presentRetried(await retrySagas(deps, { filter, limit, by, act })));
    },
  );
}

type FilterBody = Readonly<{
  workflow_name?: string;
  step?: string;
  action?: Op;
  error_class?: ErrorClass;
  created_from?: string;
  created_to?: string;
  stuck_from?: string;
  stuck_to?: string;
  saga_ids?: readonly string[];
}>;

function filterOf(body: FilterBody): StuckFilter {
  if (retryCriteria.every((criterion) => body[criterion] === undefined))
    throw invalidInput('body', 'min_properties', `must have one of: ${retryCriteria.join(', ')}`);
  const instantOf = (field: 'created_from' | 'created_to' | 'stuck_from' | 'stuck_to'): Date | null => {
    const text = body[field];
    if (text === undefined) return null;
    const instant = readInstant(text);
    if (instant === null) throw invalidInput(field, 'format', 'must be an ISO 8601 timestamp with time zone');
    return instant;
  };
  return {
    workflowName: body.workflow_name ?? null,
    stepName: body.step ?? null,
    op: body.action ?? null,
    errorClass: body.error_class ?? null,
    createdFrom: instantOf('created_from'),
    createdTo: instantOf('created_to'),
    stuckFrom: instantOf('stuck_from'),
    stuckTo: instantOf('stuck_to'),
    sagaIds: body.saga_ids === undefined ? null : readSagaIds(body.saga_ids),
  };
}

function readSagaIds(texts: readonly string[]): readonly string[] {
  const wrong = texts.findIndex((text) => !isUuid(text));
  if (wrong >= 0) throw invalidInput(`saga_ids.${wrong}`, 'format', 'must be a UUID');
  return texts.map((text) => text.toLowerCase());
}

function presentRetried({ retried, skipped, skippedSagas, remaining, isMore }: RetriedSagas): object {
  return {
    preview: false,
    retried,
    skipped,
    skipped_sagas: skippedSagas.map(({ sagaId, why }) => ({ saga_id: sagaId, reason: why })),
    remaining,
    has_more: isMore,
  };
}

function presentPreview(
  { matched, isMore, notRetryable, sample }: RetryPreview,
  masksOf: (workflow: string) => Masks,
): object {
  return {
    preview: true,
    matched,
    has_more: isMore,
    not_retryable: notRetryable,
    sample: sample.map((saga) => ({
      saga_id: saga.sagaId,
      workflow_name: saga.workflowName,
      step: saga.stepName,
      action: saga.op,
      error_class: saga.errorClass,
      reason: maskBeginning(masksOf(saga.workflowName), saga.reason, shownReasonLength),
      created_at: formatInstant(saga.createdAt),
      stuck_at: formatInstant(saga.stuckAt),
    })),
  };
}
