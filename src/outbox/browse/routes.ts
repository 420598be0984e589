import { passes } from '../../kernel/access/scope.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import { namesFor } from '../../platform/http/access/guard-access.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { orderScope, parseOrderId, root } from '../order-requests.ts';
import { presentOrderDetails } from '../present.ts';
import { IdParams, OrderDetailsSchema } from '../schemas.ts';
import { describeDestinations, type DescribeDeps } from './describe-destinations.ts';
import { findLedgerEntries, proofsOf } from './find-ledger-entries.ts';
import { getOrderDetails, sizeOfOrders } from './find-order.ts';
import { addOrderListRoutes } from './order-list-routes.ts';
import { readClock } from './read-clock.ts';
import { presentDestination, presentProofs } from './present.ts';
import * as schemas from './schemas.ts';

export type BrowseDeps = DescribeDeps;

export function addBrowseRoutes(app: HttpApp, deps: BrowseDeps): void {
  addOrderListRoutes(app, deps.db);
  addDetailRoutes(app, deps);
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
      const asOf = await readClock(db);
      const described = (await describeDestinations(deps)).filter(({ name }) => passes(names, name));
      return reply.send({ destinations: described.map(presentDestination), as_of: formatTimestamp(asOf) });
    },
  );
}
