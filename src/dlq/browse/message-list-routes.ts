import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import type { PageRequest } from '../../kernel/page.ts';
import type { Masks } from '../../kernel/protect/protection.ts';
import { namesFor } from '../../platform/http/access/guard-access.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { addListRoute, type Listed } from '../../platform/http/list-route.ts';
import { apiRoot, readInstantField } from '../../platform/http/slice-input.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import type { Payloads } from '../domain/payloads.ts';
import { readClock } from '../../platform/postgres/read-clock.ts';
import { requireWords, type Excluded, type MessageFilter } from '../message-filter.ts';
import { masksOf, presentListedMessage, presentMessage, timestamp, type Json } from '../present.ts';
import * as schemas from '../schemas.ts';
import type { Keyset, Message } from '../stored-message.ts';
import { countFacets, type Facets } from './count-facets.ts';
import { listMessages, type ListOptions, type ListWindow } from './list-messages.ts';
import { readsFacets } from './message-candidates.ts';
import { addSuggestRoute } from './suggest/suggest-route.ts';
import {
  FacetsSchema,
  MessageFilterQuery,
  MessageListQuery,
  MessageListSchema,
} from './message-list-schemas.ts';

const root = apiRoot('dlq');

/** More than a listed row usually takes. */
const listedRowBytes = 70_000;
const previewedRowBytes = 8000;
const facetBytes = 100_000;

export type ListDeps = Readonly<{ db: Queryable; payloads: Payloads; masking: PayloadMasks }>;

export function addMessageListRoutes(app: HttpApp, deps: ListDeps): void {
  const { masking } = deps;
  const messages = {
    slice: 'dlq',
    items: 'messages',
    keyOf: ({ createdAtExact, id }: Message) => [createdAtExact, id],
  };
  addListRoute(app, {
    ...messages,
    path: `${root}/messages`,
    access: { permission: 'dlq:messages:view', scope: { by: 'topics', in: 'list' } },
    operationId: 'listMessages',
    summary: 'Search messages of all topics, newest first',
    description:
      'Lists the messages for which all filters hold. A list whose filters no index covers ends after 2 s with what it has found, `scanned_until` and a cursor to continue. Use `page` for the first pages and `cursor` for deep or changing lists.',
    answer: MessageListSchema,
    query: MessageListQuery,
    rowBytes: previewedRowBytes,
    require: (query, request) => requireSearch(masking, query, request),
    present: (message, { fields }, request) =>
      withFields(presentListedMessage(message, masksOf(masking, request, message)), fields),
    async list(query, page, _request, names) {
      const asOf = await readClock(deps.db);
      const listed = await listPage(deps, { ...filterOf(query), names }, page, { payload: 'preview' });
      return { ...listed, more: { as_of: timestamp(asOf), ...listed.more } };
    },
  });
  addListRoute(app, {
    ...messages,
    path: `${root}/:topic`,
    access: { permission: 'dlq:messages:view', scope: { by: 'topics', in: 'list' } },
    operationId: 'listTopicMessages',
    summary: 'List the messages of one topic, newest first',
    description:
      'The topic is the original or the dead-letter topic. A topic without messages has an empty list.',
    answer: schemas.MessageListSchema,
    params: schemas.TopicParams,
    query: schemas.TopicListQuery,
    rowBytes: listedRowBytes,
    present: (message, _query, request) => presentMessage(message, masksOf(masking, request, message)),
    list: (_query, page, { params }, names) =>
      listPage(deps, { ...(params as Static<typeof schemas.TopicParams>), names }, page),
  });
  addFacetsRoute(app, deps);
  addSuggestRoute(app, deps);
}

function addFacetsRoute(app: HttpApp, deps: ListDeps): void {
  app.get(
    `${root}/messages/facets`,
    {
      config: { access: { permission: 'dlq:messages:view', scope: { by: 'topics', in: 'list' } } },
      schema: {
        operationId: 'countMessageFacets',
        summary: 'Count the messages of a search by status, topic, class, group and fingerprint',
        description:
          'Shows the 20 most frequent values of each field among the messages for which all filters hold. Exact up to 10 000 matches; beyond that the newest 10 000 are scaled.',
        querystring: MessageFilterQuery,
        response: { 200: FacetsSchema },
      },
    },
    async (request, reply) => {
      requireSearch(deps.masking, request.query, request);
      await request.reserveAnswer(facetBytes);
      const filter = await withHashes(deps, { ...filterOf(request.query), names: namesFor(request) });
      const asOf = await readClock(deps.db);
      const facets = presentFacets(await countFacets(deps.db, filter), filter, deps.masking.ofAny());
      return reply.send({ ...facets, as_of: timestamp(asOf) });
    },
  );
}

/** The id is always there: without it a row could not be named. */
function withFields(message: Json, fields: readonly string[] | undefined): Json {
  if (fields === undefined) return message;
  return Object.fromEntries(
    Object.entries(message).filter(([name]) => name === 'id' || fields.includes(name)),
  );
}

function presentFacets(
  { count, sampled, facets, ...search }: Facets,
  filter: MessageFilter,
  masks: Masks,
): Json {
  return {
    total_count: count.total,
    ...(count.isEstimate ? { total_is_estimate: true } : {}),
    ...(sampled === null ? {} : { sampled }),
    facets: Object.fromEntries(
      [...facets].map(([field, values]) => [
        field,
        field === 'error_class'
          ? values.map(({ value, count: found }) => ({ value: masks.text(value), count: found }))
          : values,
      ]),
    ),
    ...presentSearch(search, filter),
  };
}

function presentSearch(
  { indexedUntil, scannedUntil }: Readonly<{ indexedUntil: Date; scannedUntil: Keyset | null }>,
  filter: MessageFilter,
): Json {
  return {
    ...(filter.hasEncrypted === true ? { encrypted_not_searched: true } : {}),
    ...(readsFacets(filter) ? { indexed_until: timestamp(indexedUntil) } : {}),
    ...(scannedUntil === null ? {} : { scanned_until: timestamp(scannedDate(scannedUntil)) }),
  };
}

/** Infinite times have no date. */
function scannedDate({ createdAt }: Keyset): Date {
  const ms = Date.parse(createdAt);
  return Number.isNaN(ms)
    ? new Date(createdAt.startsWith('-') ? -62_135_596_800_000 : 253_402_300_799_999)
    : new Date(ms);
}

async function listPage(
  deps: ListDeps,
  asked: MessageFilter,
  page: PageRequest,
  options: ListOptions = {},
): Promise<Listed<Message>> {
  const filter = await withHashes(deps, asked);
  const window: ListWindow = page.by === 'number' ? page : { ...page, after: keysetOf(page.after) };
  const { messages, count, hasNext, ...search } = await listMessages(deps.db, filter, window, {
    ...options,
    payloads: deps.payloads,
  });
  const { scannedUntil } = search;
  return {
    items: messages,
    count,
    hasNext,
    resumeAfter: scannedUntil === null ? null : [scannedUntil.createdAt, scannedUntil.id],
    more: presentSearch(search, filter),
  };
}

/** Encrypted messages are found by keyed hashes, and not by the words of their payloads. */
async function withHashes({ payloads }: ListDeps, filter: MessageFilter): Promise<MessageFilter> {
  const namesKey = filter.key !== undefined || filter.not?.key !== undefined;
  const namesText = filter.text !== undefined || filter.not?.text !== undefined;
  return {
    ...filter,
    ...(namesKey ? { hashes: await payloads.hashes() } : {}),
    ...(namesText ? { hasEncrypted: await payloads.hasAny() } : {}),
  };
}

function keysetOf(after: readonly string[] | null): Keyset | null {
  const [createdAt, id] = after ?? [];
  return createdAt === undefined || id === undefined ? null : { createdAt, id };
}

/** What looks into payloads finds what is covered: a search for a guess would tell whether it is right. */
function requireSearch(masking: PayloadMasks, query: Query, request: FastifyRequest): void {
  if (query.text !== undefined || query.not_text !== undefined) masking.requirePayloads(request, 'text');
  if ((query.key !== undefined || query.not_key !== undefined) && masking.ofAny().protectsKeys)
    masking.requirePayloads(request, 'key');
  masking.requireVisible(request, 'error_class', query.error_class, 'text');
  for (const name of query.not_error_class ?? [])
    masking.requireVisible(request, 'not_error_class', name, 'text');
}

type Query = Static<typeof MessageFilterQuery>;

function filterOf(query: Query): MessageFilter {
  const { topic, status, fingerprint, error_class, key, consumer_group, unroutable, archived, text } = query;
  const since = readInstantField('dlq', 'since', query.since);
  const until = readInstantField('dlq', 'until', query.until);
  if (text !== undefined) requireWords('text', text);
  for (const words of query.not_text ?? []) requireWords('not_text', words);
  return withoutUndefined<MessageFilter>({
    topic,
    status,
    fingerprint,
    errorClass: error_class,
    key,
    consumerGroup: consumer_group,
    since,
    until,
    isUnroutable: unroutable,
    hasEdit: query.has_edit,
    isArchived: archived,
    text,
    not: withoutUndefined<Excluded>({
      topic: query.not_topic,
      status: query.not_status,
      fingerprint: query.not_fingerprint,
      errorClass: query.not_error_class,
      key: query.not_key,
      consumerGroup: query.not_consumer_group,
      text: query.not_text,
    }),
  });
}

type Undefinable<T> = { [Key in keyof T]: T[Key] | undefined };

function withoutUndefined<T extends object>(fields: Undefinable<T>): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
