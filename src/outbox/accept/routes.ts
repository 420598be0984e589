import { Type } from 'typebox';
import { scopeOfBody } from '../../platform/http/access/item-scope.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { rawJson } from '../../platform/http/raw-json.ts';
import { closed } from '../../platform/http/schema-parts.ts';
import { traceparentOf } from '../../platform/http/traceparent.ts';
import { orderCallerOf, requireSameKey, root } from '../order-requests.ts';
import { AcceptedSchema, Key, KeyHeaders, RequestSchema, TraceId } from '../schemas.ts';
import { addOrder, type AcceptDeps } from './add-order.ts';

const NewOrderBody = Type.Object(
  {
    destination: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description: 'May be omitted if only one destination is configured.',
      }),
    ),
    idempotency_key: Key,
    request: RequestSchema,
    ordering_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description: 'Orders with the same ordering key are sent one after another, in order of commit.',
      }),
    ),
    trace_id: TraceId,
  },
  closed,
);

export function addAcceptRoutes(app: HttpApp, deps: AcceptDeps): void {
  app.post(
    `${root}/orders`,
    {
      config: {
        access: { permission: 'outbox:orders:add', scope: scopeOfBody('destinations', 'destination') },
        exactJson: true,
      },
      schema: {
        operationId: 'addOrder',
        summary: 'Add an order',
        description:
          'Queues an outbound request for delivery. Repeating the same key and request returns the first answer; the same key with another request is an error. 409 if another caller used the key first and this one may not see that order. The header `idempotency-key` must equal `idempotency_key` in the body.',
        errors: [409, 422],
        takesActor: true,
        headers: KeyHeaders,
        body: NewOrderBody,
        response: { 200: AcceptedSchema, 201: AcceptedSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      requireSameKey(request.headers, body.idempotency_key);
      const input = {
        destination: body.destination ?? null,
        orderingKey: body.ordering_key ?? null,
        idempotencyKey: body.idempotency_key,
        request: body.request as Readonly<Record<string, unknown>>,
        traceId: body.trace_id ?? null,
        traceparent: traceparentOf(request),
      };
      const { outcome, answer } = await addOrder(deps, input, orderCallerOf(request));
      if (outcome === 'replayed') return reply.header('idempotent-replayed', 'true').send(rawJson(answer));
      return reply.code(201).send(rawJson(answer));
    },
  );
}
