import { passes } from '../../kernel/access/scope.ts';
import { noMasks } from '../../kernel/protect/protection.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import { namesFor, ownFor } from '../../platform/http/access/guard-access.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import { addRevealRoute } from '../../platform/http/access/reveal-route.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { orderScope, parseOrderId, root, viewOrders } from '../order-requests.ts';
import { presentOrderDetails } from '../present.ts';
import { IdParams, OrderDetailsSchema } from '../schemas.ts';
import { describeDestinations, type DescribeDeps } from './describe-destinations.ts';
import { findLedgerEntries, proofsOf } from './find-ledger-entries.ts';
import { getOrderDetails, sizeOfOrders } from './find-order.ts';
import { addOrderListRoutes } from './order-list-routes.ts';
import { readClock } from './read-clock.ts';
import { presentDestination, presentProofs } from './present.ts';
import * as schemas from './schemas.ts';

export type BrowseDeps = DescribeDeps & Readonly<{ db: Database; masking: PayloadMasks }>;

export function addBrowseRoutes(app: HttpApp, deps: BrowseDeps): void {
  addOrderListRoutes(app, deps);
  addDetailRoutes(app, deps);
  addReveal(app, deps);
  addDestinationsRoute(app, deps);
}

function addReveal(app: HttpApp, deps: BrowseDeps): void {
  addRevealRoute(app, deps, {
    path: `${root}/orders/:id/reveal`,
    permission: 'outbox:payloads:view',
    scope: orderScope(deps.db),
    operationId: 'revealOrder',
    what: 'an order',
    params: IdParams,
    answer: OrderDetailsSchema,
    idOf: ({ id }) => parseOrderId(id),
    measure: (id) => sizeOfOrders(deps.db, [id]),
    async find(tx, id) {
      const details = await getOrderDetails(tx, id);
      return {
        resource: `outbox/orders/${id}`,
        names: { destinations: [details.order.destination] },
        shown: presentOrderDetails(details, noMasks),
      };
    },
  });
}

function addDetailRoutes(app: HttpApp, deps: BrowseDeps): void {
  const { db, masking } = deps;
  app.get(
    `${root}/orders/:id`,
    {
      config: { access: { ...viewOrders, scope: orderScope(db) } },
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
      await request.reserveAnswer(masking.answerBytes(await sizeOfOrders(db, [id])));
      const details = await getOrderDetails(db, id);
      const { destination, createdBy } = details.order;
      return reply.send(presentOrderDetails(details, masking.ofAdded(request, destination, createdBy)));
    },
  );

  app.get(
    `${root}/ledger/:key`,
    {
      config: { access: { ...viewOrders, scope: { by: 'destinations', in: 'list' } } },
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
      const { key } = request.params;
      masking.requireVisible(request, 'key', key, 'key');
      const visible = { names: namesFor(request), own: ownFor(request) };
      const entries = await findLedgerEntries(db, key, visible);
      const ids = entries.map(({ orderId }) => orderId);
      await request.reserveAnswer(masking.answerBytes(await sizeOfOrders(db, ids)));
      const proofs = await proofsOf(db, entries);
      return reply.send(
        presentProofs(proofs, (order) =>
          order === null ? masking.ofAny() : masking.ofAdded(request, order.destination, order.createdBy),
        ),
      );
    },
  );
}

function addDestinationsRoute(app: HttpApp, deps: BrowseDeps): void {
  const { db, masking } = deps;
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
      return reply.send({
        destinations: described.map((each) => presentDestination(each, masking.of(request, each.name))),
        as_of: formatTimestamp(asOf),
      });
    },
  );
}
