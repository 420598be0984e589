import type { Static } from 'typebox';
import type { FastifyRequest } from 'fastify';
import type { PageRequest } from '../../kernel/page.ts';
import type { Broker } from '../../platform/broker/port.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { addListRoute, type Listed } from '../../platform/http/list-route.ts';
import { apiRoot, invalidField } from '../../platform/http/slice-input.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { presentMessage, presentWholeMessage } from '../present.ts';
import * as schemas from '../schemas.ts';
import { accountSources } from '../sources.ts';
import { parseMessageId, type Message } from '../stored-message.ts';
import { getMessage, getRawMessage, measureMessage } from './find-message.ts';
import { listMessages, type ListWindow, type MessageFilter } from './list-messages.ts';
import { listTopics } from './list-topics.ts';
import { getHistory, measureHistory } from './message-history.ts';
import { presentHistory, presentRaw, presentTopic } from './present-details.ts';
import { presentAccount, presentSource, presentVerification } from './present-source.ts';
import { createSourceVerifier } from './verify-source.ts';

const root = apiRoot('dlq');

export type BrowseDeps = Readonly<{ db: Queryable; broker: Broker | null }>;

export function addBrowseRoutes(app: HttpApp, deps: BrowseDeps): void {
  addListRoutes(app, deps);
  addMessageRoutes(app, deps);
  addSourceRoutes(app, deps);
}

function addListRoutes(app: HttpApp, { db }: BrowseDeps): void {
  app.get(
    root,
    { schema: { summary: 'Topics with their counts by status', response: { 200: schemas.TopicsSchema } } },
    async (_request, reply) => {
      const { topics, isTruncated } = await listTopics(db);
      return reply.send({ topics: topics.map(presentTopic), ...(isTruncated ? { truncated: true } : {}) });
    },
  );

  const messages = {
    slice: 'dlq',
    answer: schemas.MessageListSchema,
    items: 'messages',
    rowBytes: listedRowBytes,
    keyOf: ({ createdAtExact, id }: Message) => [createdAtExact, id],
    present: presentMessage,
  };
  addListRoute(app, {
    ...messages,
    path: `${root}/messages`,
    summary: 'Messages of all topics, newest first',
    query: schemas.MessageListQuery,
    list: ({ topic, status }, page) =>
      listPage(
        db,
        { ...(topic === undefined ? {} : { topic }), ...(status === undefined ? {} : { status }) },
        page,
      ),
  });
  addListRoute(app, {
    ...messages,
    path: `${root}/:topic`,
    summary: 'Messages of a topic, by its original or its dead-letter name, newest first',
    params: schemas.TopicParams,
    query: schemas.TopicListQuery,
    list: (_query, page, params) => listPage(db, params as Static<typeof schemas.TopicParams>, page),
  });
}

/** More than a listed row usually takes. */
const listedRowBytes = 70_000;

async function listPage(db: Queryable, filter: MessageFilter, page: PageRequest): Promise<Listed<Message>> {
  const window: ListWindow = page.by === 'number' ? page : { ...page, after: keysetOf(page.after) };
  const { messages, ...listed } = await listMessages(db, filter, window);
  return { items: messages, ...listed };
}

function keysetOf(after: readonly string[] | null): Readonly<{ createdAt: string; id: string }> | null {
  const [createdAt, id] = after ?? [];
  return createdAt === undefined || id === undefined ? null : { createdAt, id };
}

/** Base64, plus the text if it is text. */
const rawResponseFactor = 2.5;

function addMessageRoutes(app: HttpApp, { db }: BrowseDeps): void {
  app.get(
    `${root}/messages/:id`,
    {
      schema: {
        summary: 'One message, archived or not',
        params: schemas.IdParams,
        response: { 200: schemas.MessageSchema },
      },
    },
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      await reserveMessage(db, request, id);
      return reply.send(presentWholeMessage(await getMessage(db, id)));
    },
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
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      await request.reserveAnswer((await measureMessage(db, id)).raw * rawResponseFactor);
      return reply.send(presentRaw(id, await getRawMessage(db, id)));
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
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      await request.reserveAnswer(await measureHistory(db, id));
      const { entries, isTruncated } = await getHistory(db, id);
      return reply.send({
        history: entries.map(presentHistory),
        ...(isTruncated ? { truncated: true } : {}),
      });
    },
  );
}

/** Reserves memory for a response with the whole message, or throws. */
export async function reserveMessage(
  db: Queryable,
  request: Pick<FastifyRequest, 'reserveAnswer'>,
  id: string,
): Promise<void> {
  await request.reserveAnswer((await measureMessage(db, id)).payload);
}

function addSourceRoutes(app: HttpApp, deps: BrowseDeps): void {
  app.get(
    `${root}/sources`,
    { schema: { summary: 'Partitions of dead-letter topics', response: { 200: schemas.SourcesSchema } } },
    async (_request, reply) => reply.send({ sources: (await accountSources(deps.db)).map(presentSource) }),
  );

  app.get(
    `${root}/accounting`,
    {
      schema: {
        summary: 'Accounts for every record that was read, per partition',
        response: { 200: schemas.AccountingSchema },
      },
    },
    async (_request, reply) => {
      const accounts = await accountSources(deps.db);
      return reply.send({
        balanced: accounts.every((account) => account.isBalanced),
        partitions: accounts.map(presentAccount),
      });
    },
  );

  const verify = createSourceVerifier(deps);
  app.get(
    `${root}/sources/:topic/:partition/verify`,
    {
      schema: {
        summary: 'Compare the records of a partition with what is stored',
        params: schemas.SeekParams,
        querystring: schemas.VerifyQuery,
        response: { 200: schemas.VerificationSchema },
      },
    },
    async (request, reply) => {
      const { params, query } = request;
      const from = query.from === undefined ? null : BigInt(query.from);
      const to = query.to === undefined ? null : BigInt(query.to);
      if (from !== null && to !== null && from > to)
        throw invalidField('dlq', 'to', 'range', 'must not be less than from');
      const found = await verify({ ...params, from, to }, (bytes) => request.reserveAnswer(bytes));
      return reply.send(presentVerification(found));
    },
  );
}
