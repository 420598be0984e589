import type { FastifyRequest } from 'fastify';
import { Type, type TSchema } from 'typebox';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import { addActionRoute, byOf } from '../../platform/http/action-route.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { rawJson, type RawJson } from '../../platform/http/raw-json.ts';
import { closed, nullable, Reason } from '../../platform/http/schema-parts.ts';
import { traceparentOf } from '../../platform/http/traceparent.ts';
import type { OrderDetails } from '../domain/order-details.ts';
import { orderCallerOf, orderScope, parseOrderId, requireSameKey, root } from '../order-requests.ts';
import { presentOrderDetails } from '../present.ts';
import {
  acceptedFields,
  Id,
  IdParams,
  Key,
  KeyHeaders,
  OrderDetailsSchema,
  RequestSchema,
  TraceId,
} from '../schemas.ts';
import { resolveOrder, type OrderAction } from './resolve-order.ts';
import { supersedeOrder, type SupersedeDeps } from './supersede-order.ts';

export type DecideDeps = SupersedeDeps &
  Readonly<{ getOrderDetails: (id: bigint) => Promise<OrderDetails>; masking: PayloadMasks }>;

const decisionFields = {
  reason: Type.Optional(Reason),
  effect_checked: Type.Optional(
    Type.Boolean({
      description: 'You have checked the destination: the effect did not happen, or has been dealt with.',
    }),
  ),
};

const DecisionBody = Type.Optional(nullable(Type.Object(decisionFields, closed)));

const SupersedeBody = Type.Object(
  { idempotency_key: Key, request: RequestSchema, trace_id: TraceId, ...decisionFields },
  closed,
);

const CorrectionSchema: TSchema = Type.Object(
  { ...acceptedFields, supersedes_id: Id },
  { title: 'AcceptedCorrection' },
);

export function addDecideRoutes(app: HttpApp, deps: DecideDeps): void {
  addResolveRoute(app, deps, {
    kind: 'cancel',
    summary: 'Cancel an order that has not been sent',
    description: 'An order that may have had its effect is cancelled only with `effect_checked`.',
  });
  addResolveRoute(app, deps, {
    kind: 'skip',
    summary: 'Skip a dead order',
    description:
      'Unblocks the orders behind it. An order that may have had its effect is skipped only with `effect_checked`.',
  });

  app.post(
    `${root}/orders/:id/supersede`,
    {
      config: {
        access: { permission: 'outbox:orders:supersede', scope: orderScope(deps.db) },
        exactJson: true,
      },
      schema: {
        operationId: 'supersedeOrder',
        summary: 'Replace a dead order by a corrected one',
        description:
          'Adds the corrected order under a new idempotency key, in the place of the dead one in its ordering key. Repeating the same request returns the first answer. The header `idempotency-key` must equal `idempotency_key` in the body.',
        errors: [404, 409, 422],
        takesActor: true,
        params: IdParams,
        headers: KeyHeaders,
        body: SupersedeBody,
        response: { 200: CorrectionSchema, 201: CorrectionSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      requireSameKey(request.headers, body.idempotency_key);
      const caller = orderCallerOf(request);
      const action = { ...actionOf(request, request.params.id, body), caller };
      const { outcome, answer } = await supersedeOrder(deps, action, {
        idempotencyKey: body.idempotency_key,
        request: body.request as Readonly<Record<string, unknown>>,
        traceId: body.trace_id ?? null,
        traceparent: traceparentOf(request),
      });
      const correction = presentCorrection(answer, action.id);
      if (outcome === 'replayed') return reply.header('idempotent-replayed', 'true').send(correction);
      return reply.code(201).send(correction);
    },
  );
}

function addResolveRoute(
  app: HttpApp,
  deps: DecideDeps,
  { kind, ...texts }: Readonly<{ kind: 'cancel' | 'skip'; summary: string; description: string }>,
): void {
  addActionRoute(app, {
    path: `${root}/orders/:id/${kind}`,
    access: { permission: `outbox:orders:${kind}`, scope: orderScope(deps.db) },
    operationId: `${kind}Order`,
    ...texts,
    errors: [404, 409],
    params: IdParams,
    body: DecisionBody,
    answer: OrderDetailsSchema,
    isExact: true,
    async act({ params, body, request }) {
      const action = actionOf(request, params.id, body ?? {});
      await resolveOrder(deps, kind, action);
      const details = await deps.getOrderDetails(action.id);
      return presentOrderDetails(details, deps.masking.of(request, details.order.destination));
    },
  });
}

type Decision = Readonly<{ reason?: string | undefined; effect_checked?: boolean | undefined }>;

function actionOf(request: FastifyRequest, id: string, decision: Decision): OrderAction {
  return {
    id: parseOrderId(id),
    ...byOf(request, decision.reason ?? null),
    effectChecked: decision.effect_checked === true,
  };
}

/** The stored answer to the corrected order, plus the id of the order that it supersedes. */
function presentCorrection(answer: string, supersedesId: bigint): RawJson {
  return rawJson(`${answer.slice(0, -1)}, "supersedes_id" : ${supersedesId}}`);
}
