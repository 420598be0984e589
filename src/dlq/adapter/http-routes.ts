import { encodeCursor, paginationOf, readPage, type PageQuery } from '../../kernel/page.ts';
import { actorOf } from '../../platform/http/actor.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { stringifyWithRaw } from '../../platform/http/raw-json.ts';
import { deleteMessage, markMessageDead, reopenMessage, type ActionDeps } from '../usecase/act-on-message.ts';
import { getHistory, getMessage, getRawMessage, parseMessageId } from '../usecase/find-message.ts';
import { listMessages, type ListWindow } from '../usecase/list-messages.ts';
import type { MessageFilter, MessageReader } from '../usecase/ports.ts';
import { retryAll, type RetryAllDeps } from '../usecase/retry-all.ts';
import { retryMessage } from '../usecase/retry-message.ts';
import type { SeekDeps } from '../usecase/seek-source.ts';
import { invalidInput } from './invalid-input.ts';
import { presentHistory, presentMessage, presentRaw, presentTopic, presentWholeMessage } from './present.ts';
import { root } from './root.ts';
import * as schemas from './schemas.ts';
import { addSourceRoutes } from './source-routes.ts';

export type RouteDeps = ActionDeps & SeekDeps & RetryAllDeps & Readonly<{ reader: MessageReader }>;

export function addDlqRoutes(app: HttpApp, deps: RouteDeps): void {
  // Payloads are PostgreSQL's own JSON text and go out as they are: a serialiser would round their numbers.
  app.setReplySerializer((payload) => stringifyWithRaw(payload));
  addReadingRoutes(app, deps);
  addRetryRoutes(app, deps);
  addActionRoutes(app, deps);
  addSourceRoutes(app, deps);
}

function addReadingRoutes(app: HttpApp, deps: RouteDeps): void {
  app.get(
    root,
    { schema: { summary: 'Topics with their counts by status', response: { 200: schemas.TopicsSchema } } },
    async (_request, reply) => reply.send({ topics: (await deps.reader.topics()).map(presentTopic) }),
  );

  app.get(
    `${root}/messages`,
    {
      schema: {
        summary: 'Messages of all topics, newest first',
        querystring: schemas.MessageListQuery,
        response: { 200: schemas.MessageListSchema },
      },
    },
    async ({ query }, reply) => {
      const { topic, status, ...page } = query;
      const filter = {
        ...(topic === undefined ? {} : { topic }),
        ...(status === undefined ? {} : { status }),
      };
      return reply.send(await listPage(deps.reader, filter, page));
    },
  );

  app.get(
    `${root}/:topic`,
    {
      schema: {
        summary: 'Messages of a topic, by its original or its dead-letter name, newest first',
        params: schemas.TopicParams,
        querystring: schemas.TopicListQuery,
        response: { 200: schemas.MessageListSchema },
      },
    },
    async ({ params, query }, reply) =>
      reply.send(await listPage(deps.reader, { topic: params.topic }, query)),
  );

  app.get(
    `${root}/messages/:id`,
    {
      schema: {
        summary: 'One message, archived or not',
        params: schemas.IdParams,
        response: { 200: schemas.MessageSchema },
      },
    },
    async ({ params }, reply) =>
      reply.send(presentWholeMessage(await getMessage(deps.reader, parseMessageId(params.id)))),
  );

  app.get(
    `${root}/messages/:id/raw`,
    {
      schema: {
        summary: 'The record byte for byte',
        params: schemas.IdParams,
        response: { 200: schemas.RawSchema },
      },
    },
    async ({ params }, reply) => {
      const id = parseMessageId(params.id);
      return reply.send(presentRaw(id, await getRawMessage(deps.reader, id)));
    },
  );

  app.get(
    `${root}/messages/:id/history`,
    {
      schema: {
        summary: 'Every transition of a message, also of a deleted one',
        params: schemas.IdParams,
        response: { 200: schemas.HistorySchema },
      },
    },
    async ({ params }, reply) => {
      const history = await getHistory(deps.reader, parseMessageId(params.id));
      return reply.send({ history: history.map(presentHistory) });
    },
  );
}

async function listPage(reader: MessageReader, filter: MessageFilter, query: PageQuery): Promise<object> {
  const page = readPage(query);
  if (page === null) throw invalidInput('cursor', 'invalid', 'the cursor is not one of ours');
  const window: ListWindow = page.by === 'number' ? page : { ...page, after: keysetOf(page.after) };
  const { messages, count, hasNext } = await listMessages(reader, filter, window);
  const last = messages.at(-1);
  const next = hasNext && last !== undefined ? encodeCursor([last.createdAtExact, last.id]) : null;
  return {
    messages: messages.map(presentMessage),
    pagination: paginationOf({
      total: count.total,
      isEstimate: count.isEstimate,
      page: page.page,
      pageSize: page.pageSize,
      hasNext,
      ...(page.by === 'keyset' ? { nextCursor: next } : {}),
    }),
  };
}

function keysetOf(after: readonly string[] | null): Readonly<{ createdAt: string; id: string }> | null {
  const [createdAt, id] = after ?? [];
  return createdAt === undefined || id === undefined ? null : { createdAt, id };
}

function addRetryRoutes(app: HttpApp, deps: RouteDeps): void {
  app.post(
    `${root}/messages/:id/retry`,
    {
      schema: {
        summary: 'Publish a message to its original topic again',
        params: schemas.IdParams,
        body: schemas.NoBody,
        response: { 200: schemas.RetrySchema },
      },
    },
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      const { status, published } = await retryMessage(deps, id, actorOf(request));
      return reply.send({ id, status, message: 'message retry initiated', published });
    },
  );

  app.post(
    `${root}/:topic/retry-all`,
    {
      schema: {
        summary: 'Retry everything retryable of a topic',
        params: schemas.TopicParams,
        body: schemas.NoBody,
        response: { 200: schemas.RetryAllSchema },
      },
    },
    async (request, reply) => {
      const { topic } = request.params;
      const { retried, failed, unroutable, skipped } = await retryAll(deps, topic, actorOf(request));
      return reply.send({
        retried,
        message: `${retried} messages retried in topic ${topic}`,
        ...(failed > 0 ? { failed } : {}),
        ...(unroutable > 0 ? { unroutable } : {}),
        ...(skipped > 0 ? { skipped } : {}),
      });
    },
  );
}

function addActionRoutes(app: HttpApp, deps: RouteDeps): void {
  app.delete(
    `${root}/messages/:id`,
    {
      schema: {
        summary: 'Delete a message; its history stays',
        params: schemas.IdParams,
        response: { 200: schemas.DeleteSchema },
      },
    },
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      await deleteMessage(deps, { id, actor: actorOf(request), reason: null });
      return reply.send({ success: true, message: `message ${id} deleted` });
    },
  );

  app.post(
    `${root}/messages/:id/dead`,
    {
      schema: {
        summary: 'Give up on a message',
        params: schemas.IdParams,
        body: schemas.OptionalReasonBody,
        response: { 200: schemas.MessageSchema },
      },
    },
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      const reason = request.body?.reason ?? null;
      const action = { id, actor: actorOf(request), reason };
      return reply.send(presentWholeMessage(await markMessageDead(deps, action)));
    },
  );

  app.post(
    `${root}/messages/:id/reopen`,
    {
      schema: {
        summary: 'Give a dead, resolved or spent message a new budget',
        params: schemas.IdParams,
        body: schemas.ReasonBody,
        response: { 200: schemas.MessageSchema },
      },
    },
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      const action = { id, actor: actorOf(request), reason: request.body.reason };
      return reply.send(presentWholeMessage(await reopenMessage(deps, action)));
    },
  );
}
