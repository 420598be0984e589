import { encodeCursor, paginationOf, readPage, type PageQuery } from '../../kernel/page.ts';
import { actorOf } from '../../platform/http/actor.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { rawJson } from '../../platform/http/raw-json.ts';
import { traceparentOf } from '../../platform/http/traceparent.ts';
import { addOrder, type AddDeps } from '../usecase/add-order.ts';
import { describeDestinations, type DescribeDeps } from '../usecase/describe-destinations.ts';
import { getOrder, parseOrderId, proveEffect } from '../usecase/find-order.ts';
import { listOrders, type ListPage } from '../usecase/list-orders.ts';
import type { Order, OrderFilter, OrderReader } from '../usecase/reading-ports.ts';
import { requireSameKey } from './idempotency-header.ts';
import { invalidInput } from './invalid-input.ts';
import { presentDestination, presentOrder, presentProofs, presentToldOrder } from './present.ts';
import { readInstant } from '../../kernel/read-instant.ts';
import { root } from './root.ts';
import * as schemas from './schemas.ts';

/** Placing orders, and looking at them, at the ledger and at the destinations. */
export function addOrderRoutes(
  app: HttpApp,
  deps: AddDeps & DescribeDeps & Readonly<{ reader: OrderReader }>,
): void {
  app.post(
    `${root}/orders`,
    {
      config: { exactJson: true },
      schema: {
        summary: 'Place an order; the same key and request again get the first answer again',
        headers: schemas.KeyHeaders,
        body: schemas.NewOrderBody,
        response: { 200: schemas.AcceptedSchema, 201: schemas.AcceptedSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      requireSameKey(request.headers, body.idempotency_key);
      const asked = {
        destination: body.destination ?? null,
        orderingKey: body.ordering_key ?? null,
        idempotencyKey: body.idempotency_key,
        request: body.request as Readonly<Record<string, unknown>>,
        traceId: body.trace_id ?? null,
        traceparent: traceparentOf(request),
      };
      const { outcome, answer } = await addOrder(deps, asked, actorOf(request));
      if (outcome === 'replayed') return reply.header('idempotent-replayed', 'true').send(rawJson(answer));
      return reply.code(201).send(rawJson(answer));
    },
  );

  app.get(
    `${root}/orders`,
    {
      schema: {
        summary: 'Orders, newest first',
        querystring: schemas.OrderListQuery,
        response: { 200: schemas.OrderListSchema },
      },
    },
    async ({ query }, reply) => {
      const { page, page_size, cursor, ...wanted } = query;
      return reply.send(await listPage(deps.reader, filterOf(wanted), { page, page_size, cursor }));
    },
  );

  app.get(
    `${root}/orders/:id`,
    {
      schema: {
        summary: 'One order with its attempts and its audit, archived or not',
        params: schemas.IdParams,
        response: { 200: schemas.ToldOrderSchema },
      },
    },
    async ({ params }, reply) =>
      reply.send(presentToldOrder(await getOrder(deps.reader, parseOrderId(params.id)))),
  );

  app.get(
    `${root}/ledger/:key`,
    {
      schema: {
        summary: 'The proof of one effect: what was asked under a key, every attempt, and what came of it',
        params: schemas.KeyParams,
        response: { 200: schemas.ProofSchema },
      },
    },
    async ({ params }, reply) => reply.send(presentProofs(await proveEffect(deps.reader, params.key))),
  );

  app.get(
    `${root}/destinations`,
    {
      schema: {
        summary: 'Every destination: how it is treated, and what waits for it',
        response: { 200: schemas.DestinationsSchema },
      },
    },
    async (_request, reply) =>
      reply.send({ destinations: (await describeDestinations(deps)).map(presentDestination) }),
  );
}

type FilterQuery = Readonly<{
  status?: OrderFilter['status'];
  destination?: string | undefined;
  idempotency_key?: string | undefined;
  created_from?: string | undefined;
  created_to?: string | undefined;
  needs_person?: true | undefined;
}>;

function filterOf(query: FilterQuery): OrderFilter {
  return {
    status: query.status,
    destination: query.destination,
    idempotencyKey: query.idempotency_key,
    createdFrom: instantOf('created_from', query.created_from),
    createdTo: instantOf('created_to', query.created_to),
    needsPerson: query.needs_person,
  };
}

function instantOf(field: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const instant = readInstant(text);
  if (instant === null) throw invalidInput(field, 'format', 'must be a timestamp in ISO 8601 with its zone');
  return instant;
}

async function listPage(reader: OrderReader, filter: OrderFilter, query: PageQuery): Promise<object> {
  const isByTime = filter.createdFrom !== undefined || filter.createdTo !== undefined;
  const page = readPage(query, isByTime ? ['bigint', 'timestamp'] : ['bigint']);
  if (page === null)
    throw invalidInput('cursor', 'invalid', 'must be one of ours, from a list by the same filters');
  const { orders, count, hasNext } = await listOrders(reader, filter, listPageOf(page));
  const last = orders.at(-1);
  const next = hasNext && last !== undefined ? cursorOf(last, isByTime) : null;
  return {
    orders: orders.map(presentOrder),
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

function listPageOf(page: NonNullable<ReturnType<typeof readPage>>): ListPage {
  if (page.by === 'number') return page;
  const [id, createdAt] = page.after ?? [];
  return { ...page, after: id === undefined ? null : { id, createdAt: createdAt ?? null } };
}

function cursorOf({ id, createdAtExact }: Order, isByTime: boolean): string {
  return encodeCursor(isByTime ? [String(id), createdAtExact] : [String(id)]);
}
