import { passes } from '../../kernel/access/scope.ts';
import type { PageRequest } from '../../kernel/page.ts';
import { namesFor } from '../../platform/http/access/guard-access.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { addListRoute } from '../../platform/http/list-route.ts';
import { readInstantField } from '../../platform/http/slice-input.ts';
import { orderScope, parseOrderId, root } from '../order-requests.ts';
import { presentOrder, presentOrderDetails } from '../present.ts';
import { IdParams, OrderDetailsSchema } from '../schemas.ts';
import { describeDestinations, type DescribeDeps } from './describe-destinations.ts';
import { findLedgerEntries, proofsOf } from './find-ledger-entries.ts';
import { getOrderDetails, sizeOfOrders } from './find-order.ts';
import { isByTime, listOrders, type ListPage, type OrderFilter } from './list-orders.ts';
import { presentDestination, presentProofs } from './present.ts';
import * as schemas from './schemas.ts';

export type BrowseDeps = DescribeDeps;

export function addBrowseRoutes(app: HttpApp, deps: BrowseDeps): void {
  addOrderList(app, deps);
  addDetailRoutes(app, deps);
}

function addOrderList(app: HttpApp, { db }: BrowseDeps): void {
  addListRoute(app, {
    slice: 'outbox',
    path: `${root}/orders`,
    access: { permission: 'outbox:orders:view', scope: { by: 'destinations', in: 'list' } },
    operationId: 'listOrders',
    summary: 'List orders, newest first',
    description:
      'Filters by status, destination, key, fingerprint, time and `needs_attention`. Use `page` for the first pages and `cursor` for deep or changing lists.',
    query: schemas.OrderListQuery,
    answer: schemas.OrderListSchema,
    items: 'orders',
    rowBytes: listedRowBytes,
    cursor: (query) => (isByTime(filterOf(query)) ? ['bigint', 'timestamp'] : ['bigint']),
    async list(query, page, _request, names) {
      const filter = { ...filterOf(query), names };
      const { orders, ...listed } = await listOrders(db, filter, listPageOf(page));
      return { items: orders, ...listed };
    },
    keyOf: ({ id, createdAtExact }, query) =>
      isByTime(filterOf(query)) ? [String(id), createdAtExact] : [String(id)],
    present: presentOrder,
  });
}

function addDetailRoutes(app: HttpApp, deps: BrowseDeps): void {
  const { db } = deps;
  app.get(
    `${root}/orders/:id`,
    {
      config: { access: { permission: 'outbox:orders:view', scope: orderScope(db) } },
      schema: {
        operationId: 'getOrder',
        summary: 'Get one order with its attempts and audit log',
        description: 'Finds live and archived orders.',
        errors: [404],
        params: IdParams,
        response: { 200: OrderDetailsSchema },
      },
    },
    async (request, reply) => {
      const id = parseOrderId(request.params.id);
      await request.reserveAnswer(await sizeOfOrders(db, [id]));
      return reply.send(presentOrderDetails(await getOrderDetails(db, id)));
    },
  );

  app.get(
    `${root}/ledger/:key`,
    {
      config: { access: { permission: 'outbox:orders:view', scope: { by: 'destinations', in: 'list' } } },
      schema: {
        operationId: 'getLedgerEntry',
        summary: 'Get the recorded effect of an idempotency key',
        description: 'Shows what was requested under the key, every attempt, and the result.',
        errors: [404],
        params: schemas.KeyParams,
        response: { 200: schemas.ProofSchema },
      },
    },
    async (request, reply) => {
      const entries = await findLedgerEntries(db, request.params.key, namesFor(request));
      await request.reserveAnswer(
        await sizeOfOrders(
          db,
          entries.map(({ orderId }) => orderId),
        ),
      );
      return reply.send(presentProofs(await proofsOf(db, entries)));
    },
  );

  app.get(
    `${root}/destinations`,
    {
      config: {
        access: { permission: 'outbox:destinations:view', scope: { by: 'destinations', in: 'list' } },
      },
      schema: {
        operationId: 'listDestinations',
        summary: 'List destinations with throttle, circuit and backlog',
        description:
          'Shows also destinations that have waiting orders but are not configured in this process.',
        response: { 200: schemas.DestinationsSchema },
      },
    },
    async (request, reply) => {
      const names = namesFor(request);
      const described = (await describeDestinations(deps)).filter(({ name }) => passes(names, name));
      return reply.send({ destinations: described.map(presentDestination) });
    },
  );
}

/** More than a row of a list takes, with few exceptions. */
const listedRowBytes = 84_000;

type FilterQuery = Readonly<{
  status?: OrderFilter['status'];
  destination?: string | undefined;
  idempotency_key?: string | undefined;
  fingerprint?: string | undefined;
  created_from?: string | undefined;
  created_to?: string | undefined;
  needs_attention?: true | undefined;
}>;

function filterOf(query: FilterQuery): OrderFilter {
  return {
    status: query.status,
    destination: query.destination,
    idempotencyKey: query.idempotency_key,
    fingerprint: query.fingerprint,
    createdFrom: readInstantField('outbox', 'created_from', query.created_from),
    createdTo: readInstantField('outbox', 'created_to', query.created_to),
    needsAttention: query.needs_attention,
  };
}

function listPageOf(page: PageRequest): ListPage {
  if (page.by === 'number') return page;
  const [id, createdAt] = page.after ?? [];
  return { ...page, after: id === undefined ? null : { id, createdAt: createdAt ?? null } };
}
