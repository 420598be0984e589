import { namesAllowed } from '../../kernel/access/principal.ts';
import type { Rights } from '../../kernel/access/rights.ts';
import { recordOperation } from '../../platform/audit/record-operation.ts';
import { namesFor } from '../../platform/http/access/guard-access.ts';
import { byOf } from '../../platform/http/action-route.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { apiRoot } from '../../platform/http/slice-input.ts';
import type { Json } from '../present.ts';
import { withCurrent } from '../current-message.ts';
import * as schemas from '../schemas.ts';
import { messageScope, parseMessageId } from '../stored-message.ts';
import { noteBulkAct } from './bulk-acts.ts';
import { retryAll, type RetryAllDeps } from './retry-all.ts';
import { retryMessage } from './retry-message.ts';
import type { RetryAllResult } from './retry-tally.ts';

const root = apiRoot('dlq');

type RedriveDeps = RetryAllDeps & Readonly<{ rights: Pick<Rights, 'areKept' | 'personOf'> }>;

export function addRedriveRoutes(app: HttpApp, deps: RedriveDeps): void {
  app.post(
    `${root}/messages/:id/retry`,
    {
      config: { access: { permission: 'dlq:messages:retry', scope: messageScope(deps.worker.db) } },
      schema: {
        operationId: 'retryMessage',
        summary: 'Retry a message: publish it to its original topic',
        description:
          'Answers when the broker has confirmed. Only a PENDING message can be retried, and each retry counts as an attempt. Without a broker nothing is sent, and `published` is false.',
        errors: [404, 409, 422],
        takesActor: true,
        params: schemas.IdParams,
        body: schemas.NoBody,
        response: { 200: schemas.RetrySchema },
      },
    },
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      const names = namesAllowed(request.principal, 'dlq:messages:retry', 'topics');
      const { status, published } = await withCurrent(deps.findHead, id, () =>
        retryMessage(deps, id, { ...byOf(request, null), names }),
      );
      return reply.send({ id, status, message: 'message retry initiated', published });
    },
  );

  app.post(
    `${root}/:topic/retry-all`,
    {
      config: {
        access: { permission: 'dlq:messages:retry-all', scope: { by: 'topics', in: 'selection' } },
        takesMinutes: true,
        heavy: true,
      },
      schema: {
        operationId: 'retryAllMessages',
        summary: 'Retry all retryable messages of a topic',
        description:
          'Answers when all have been tried, which can take minutes. A call that ends early says how many remain.',
        errors: [404, 429],
        takesActor: true,
        params: schemas.TopicParams,
        body: schemas.NoBody,
        response: { 200: schemas.RetryAllSchema },
      },
    },
    async (request, reply) => {
      const { topic } = request.params;
      const { actor, act } = byOf(request, null);
      const about = { resource: `dlq/topics/${topic}`, names: { topics: [topic] } };
      const result = await recordOperation(deps.worker.db, act, about, {
        run: () => retryAll(deps, topic, actor, namesFor(request)),
        endOf: ({ retried, failed, skipped, excluded, remaining, ended }) => ({
          items: retried,
          detail: { retried, failed, skipped, excluded, remaining, ended },
        }),
      });
      await noteRetryAll(deps, actor, result);
      return reply.send(presentRetryAll(topic, result));
    },
  );
}

/** It needs no approval, but counts for the redrives of the same person. */
async function noteRetryAll(
  { rights, worker }: RedriveDeps,
  actor: string,
  { retried, failed }: RetryAllResult,
): Promise<void> {
  if (rights.areKept) await noteBulkAct(worker.db, await rights.personOf(actor), retried + failed);
}

function presentRetryAll(topic: string, { retried, exclusions, ended, ...left }: RetryAllResult): Json {
  const { failed, skipped, excluded, remaining } = left;
  const why = ended === null ? '' : `; the call ended early: ${ended}`;
  const message = `${retried} messages retried in topic ${topic}${why}`;
  return { retried, message, failed, skipped, excluded, remaining, exclusions };
}
