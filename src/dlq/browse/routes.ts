import type { FastifyRequest } from 'fastify';
import type { NameFilter } from '../../kernel/access/scope.ts';
import type { Broker } from '../../platform/broker/port.ts';
import { namesFor } from '../../platform/http/access/guard-access.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { addIdPrefixRoute } from '../../platform/http/id-prefix-route.ts';
import { findIds, type TableWithIds } from '../../platform/postgres/find-ids.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { apiRoot, invalidField } from '../../platform/http/slice-input.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { statuses } from '../domain/message.ts';
import { readClock } from '../../platform/postgres/read-clock.ts';
import { masksOf, messageTag, presentWholeMessage, timestamp } from '../present.ts';
import * as schemas from '../schemas.ts';
import { accountSources, sourceScope } from '../sources.ts';
import { historyScope, messageScope, parseMessageId } from '../stored-message.ts';
import { getMessage, measureMessage } from './find-message.ts';
import { addGroupRoutes } from './group-routes.ts';
import { listTopics } from './topics/list-topics.ts';
import { TopicsQuery, TopicsSchema } from './topics/topic-schemas.ts';
import { getHistory, measureHistory } from './message-history.ts';
import { addMessageListRoutes } from './message-list-routes.ts';
import { presentHistory, presentTopic, type TopicPolicy } from './present-details.ts';
import { presentAccount, presentSource, presentVerification } from './present-source.ts';
import { addVersionRoutes, type VersionDeps } from './version-routes.ts';
import { createSourceVerifier } from './verify-source.ts';

const root = apiRoot('dlq');

const tables: readonly TableWithIds[] = [
  { table: sql`dlq.dlq_messages`, id: sql`id`, isArchive: false, name: sql`t.original_topic` },
  { table: sql`dlq.dlq_messages_archive`, id: sql`id`, isArchive: true, name: sql`t.original_topic` },
];

export type BrowseDeps = VersionDeps &
  Readonly<{
    broker: Broker | null;
    /** The policies of each topic that somebody may see who sees these names. */
    findPolicies: (names: NameFilter) => Promise<(topic: string) => readonly TopicPolicy[]>;
  }>;

export function addBrowseRoutes(app: HttpApp, deps: BrowseDeps): void {
  addTopicsRoute(app, deps);
  addMessageListRoutes(app, deps);
  addIdPrefixRoute(app, {
    slice: 'dlq',
    path: `${root}/messages/ids`,
    access: { permission: 'dlq:messages:view', scope: { by: 'topics', in: 'list' } },
    operationId: 'findMessageIds',
    items: 'messages',
    statuses,
    find: (range, limit, names) => findIds(deps.db, tables, range, { limit, names }),
  });
  addGroupRoutes(app, deps);
  addMessageRoutes(app, deps);
  addVersionRoutes(app, deps);
  addSourceRoutes(app, deps);
}

function addTopicsRoute(app: HttpApp, { db, findPolicies }: BrowseDeps): void {
  app.get(
    root,
    {
      config: { access: { permission: 'dlq:messages:view', scope: { by: 'topics', in: 'list' } } },
      schema: {
        operationId: 'listTopics',
        summary: 'List topics with their counts by status',
        description:
          'Counts the messages of each original topic by status, and shows the oldest pending message, the arrival rate, where its messages came from, and the retry policies that match it. Lists at most 10 000 topics.',
        querystring: TopicsQuery,
        response: { 200: TopicsSchema },
      },
    },
    async (request, reply) => {
      const asOf = timestamp(await readClock(db));
      const names = namesFor(request);
      const policiesOf = await findPolicies(names);
      const { topics, isTruncated } = await listTopics(db, { names, topic: request.query.topic });
      const more = isTruncated ? { truncated: true } : {};
      return reply.send({
        topics: topics.map((one) => presentTopic(one, policiesOf(one.topic))),
        ...more,
        as_of: asOf,
      });
    },
  );
}

function addMessageRoutes(app: HttpApp, { db, payloads, masking }: BrowseDeps): void {
  app.get(
    `${root}/messages/:id`,
    {
      config: { access: { permission: 'dlq:messages:view', scope: messageScope(db) } },
      schema: {
        operationId: 'getMessage',
        summary: 'Get one message, archived or not',
        description:
          'Shows the message with its payload and the stack trace of its failure. Payloads above 16 MiB are left out.',
        errors: [404],
        hasEtag: true,
        params: schemas.IdParams,
        response: { 200: schemas.MessageSchema },
      },
    },
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      await reserveMessage(db, request, id);
      const message = await getMessage(db, id, payloads);
      return reply
        .header('etag', messageTag(message))
        .send(presentWholeMessage(message, masksOf(masking, request, message)));
    },
  );

  app.get(
    `${root}/messages/:id/history`,
    {
      config: { access: { permission: 'dlq:messages:view', scope: historyScope(db) } },
      schema: {
        operationId: 'getMessageHistory',
        summary: 'Get every transition of a message',
        description:
          'Lists what happened to the message, oldest first, with actor and reason; also for a deleted message.',
        errors: [404],
        params: schemas.IdParams,
        response: { 200: schemas.HistorySchema },
      },
    },
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      await request.reserveAnswer(await measureHistory(db, id));
      const { entries, isTruncated } = await getHistory(db, id);
      return reply.send({
        history: entries.map((entry) => presentHistory(entry, masking.ofAny())),
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
  await request.reserveAnswer(await measureMessage(db, id));
}

function addSourceRoutes(app: HttpApp, deps: BrowseDeps): void {
  app.get(
    `${root}/sources`,
    {
      config: { access: { permission: 'dlq:sources:view', scope: { by: 'topics', in: 'list' } } },
      schema: {
        operationId: 'listSources',
        summary: 'List the partitions of dead-letter topics',
        description: 'Shows position, lag, owner and state of each partition that is or was read.',
        response: { 200: schemas.SourcesSchema },
      },
    },
    async (request, reply) =>
      reply.send({ sources: (await accountSources(deps.db, namesFor(request))).map(presentSource) }),
  );

  app.get(
    `${root}/accounting`,
    {
      config: { access: { permission: 'dlq:sources:view', scope: { by: 'topics', in: 'list' } } },
      schema: {
        operationId: 'getAccounting',
        summary: 'Account for every record that was read',
        description:
          'Proves for each partition that every offset was stored, folded into another message, not a record, or lost to retention.',
        response: { 200: schemas.AccountingSchema },
      },
    },
    async (request, reply) => {
      const accounts = await accountSources(deps.db, namesFor(request));
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
      config: { access: { permission: 'dlq:sources:view', scope: sourceScope } },
      schema: {
        operationId: 'verifySource',
        summary: 'Compare the records of a partition with what is stored',
        description:
          'Reads the partition from the broker again, within `from` and `to`, and compares every byte. A long range is checked in several calls: continue at `next`.',
        errors: [404, 409],
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
