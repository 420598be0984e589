import type { FastifyRequest } from 'fastify';
import type { PageRequest } from '../../kernel/page.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import { namesFor, ownFor } from '../../platform/http/access/guard-access.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { RouteAccess } from '../../platform/http/access/route-access.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { addListRoute } from '../../platform/http/list-route.ts';
import { readInstantField } from '../../platform/http/slice-input.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { root, viewOrders } from '../order-requests.ts';
import { presentOrder } from '../present.ts';
import { countFacets } from './count-facets.ts';
import { listOrders, type ListPage } from './list-orders.ts';
import { isByTime, type OrderFilter } from './order-filter.ts';
import { presentFacets } from './present.ts';
import { readClock } from './read-clock.ts';
import { FacetsSchema, OrderFilterQuery, OrderListQuery, OrderListSchema } from './schemas.ts';

const access: RouteAccess = { ...viewOrders, scope: { by: 'destinations', in: 'list' } };

export type OrderListDeps = Readonly<{ db: Queryable; masking: PayloadMasks }>;

export function addOrderListRoutes(app: HttpApp, { db, masking }: OrderListDeps): void {
  addListRoute(app, {
    slice: 'outbox',
    path: `${root}/orders`,
    access,
    operationId: 'listOrders',
    summary: 'List orders, newest first',
    description:
      'Lists the orders for which all filters hold. Use `page` for the first pages and `cursor` for deep or changing lists.',
    query: OrderListQuery,
    answer: OrderListSchema,
    items: 'orders',
    rowBytes: masking.answerBytes(listedRowBytes),
    require: (query, request) => requireFilter(masking, query, request),
    cursor: (query) => (isByTime(filterOf(query)) ? ['bigint', 'timestamp'] : ['bigint']),
    async list(query, page, request, names) {
      const filter = { ...filterOf(query), names, own: ownFor(request) };
      const asOf = await readClock(db);
      const { orders, ...listed } = await listOrders(db, filter, listPageOf(page));
      return { items: orders, ...listed, more: { as_of: formatTimestamp(asOf) } };
    },
    keyOf: ({ id, createdAtExact }, query) =>
      isByTime(filterOf(query)) ? [String(id), createdAtExact] : [String(id)],
    present: (order, _query, request) =>
      presentOrder(order, masking.ofAdded(request, order.destination, order.createdBy)),
  });

  app.get(
    `${root}/orders/facets`,
    {
      config: { access },
      schema: {
        operationId: 'countOrderFacets',
        summary: 'Count orders by status, destination, error code and fingerprint',
        description:
          'Shows the 20 most frequent values of each field among the orders for which all filters hold. Exact up to 10 000 matches; beyond that the newest 10 000 are scaled.',
        querystring: OrderFilterQuery,
        response: { 200: FacetsSchema },
      },
    },
    async (request, reply) => {
      requireFilter(masking, request.query, request);
      const asOf = await readClock(db);
      const filter = { ...filterOf(request.query), names: namesFor(request), own: ownFor(request) };
      const found = await countFacets(db, filter);
      return reply.send({ ...presentFacets(found, masking.ofAny()), as_of: formatTimestamp(asOf) });
    },
  );
}

/** More than a row of a list takes, with few exceptions. */
const listedRowBytes = 84_000;

type FilterQuery = Readonly<{
  status?: OrderFilter['status'];
  ordering_key?: string | undefined;
  error_code?: string | undefined;
  in_doubt?: boolean | undefined;
  held?: boolean | undefined;
  destination?: string | undefined;
  idempotency_key?: string | undefined;
  fingerprint?: string | undefined;
  created_from?: string | undefined;
  created_to?: string | undefined;
  needs_attention?: boolean | undefined;
}>;

/** Whether something matches would tell whether a guess of what is covered is right. */
function requireFilter(masking: PayloadMasks, asked: FilterQuery, request: FastifyRequest): void {
  masking.requireVisible(request, 'idempotency_key', asked.idempotency_key, 'key');
  masking.requireVisible(request, 'ordering_key', asked.ordering_key, 'key');
  masking.requireVisible(request, 'error_code', asked.error_code, 'text');
}

function filterOf(query: FilterQuery): OrderFilter {
  return {
    status: query.status,
    destination: query.destination,
    idempotencyKey: query.idempotency_key,
    fingerprint: query.fingerprint,
    createdFrom: readInstantField('outbox', 'created_from', query.created_from),
    createdTo: readInstantField('outbox', 'created_to', query.created_to),
    needsAttention: query.needs_attention,
    orderingKey: query.ordering_key,
    errorCode: query.error_code,
    inDoubt: query.in_doubt,
    isBlocked: query.held,
  };
}

function listPageOf(page: PageRequest): ListPage {
  if (page.by === 'number') return page;
  const [id, createdAt] = page.after ?? [];
  return { ...page, after: id === undefined ? null : { id, createdAt: createdAt ?? null } };
}
